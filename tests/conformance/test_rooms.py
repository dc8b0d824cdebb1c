# SPDX-License-Identifier: MIT
"""Every file names its licence. (What the rooms may include is checked by tests/unit/rooms.sh.)"""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]


def has_licence(file):
    return "SPDX-License-Identifier:" in file.read_text()[:300]


def test_every_file_names_its_licence():
    """Those of share/ that can't hold a comment have theirs in a file beside them."""
    suffixes = {".c", ".h", ".cc", ".def", ".fbs", ".map", ".py", ".sh", ".build", ".ini", ".md", ".txt"}
    names = {"run", "test", "demo"}
    folders = ["src", "include", "tools", "tests", "bench", "docs", "cross", "scripts", ".ci", "share"]
    files = [*ROOT.glob("*.md"), *ROOT.glob("meson*"), *(f for folder in folders for f in (ROOT / folder).rglob("*"))]
    files = [f for f in files if f.is_file() and (f.suffix in suffixes or f.name in names) and "cache" not in str(f.relative_to(ROOT))]
    missing = [str(f.relative_to(ROOT)) for f in files
               if not f.with_name(f.name + ".license").exists() and not has_licence(f)]
    assert len(files) > 200 and not missing, missing
