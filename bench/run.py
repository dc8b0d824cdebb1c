# SPDX-License-Identifier: MIT
"""Measures what the README claims, each figure beside what a user would use instead, in one run (docs/bench.md).

Times of this machine are multiples of LiteRT's on one thread; coefficient bytes stand beside raw weights, their
entropy and the format's floor; modelled times come from a timing model, not from silicon.
"""

import argparse
import json
import pathlib

import coefficients
import modelled
import rockchip
import rockchip_timing
import speed
import timing_model
from common import CHIPS, ROCKCHIP_CHIPS, ROOT, Bars, Tools, models_here

PARTS = ["speed", "coefficients", "modelled", "captures", "timing"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="meson build directory")
    parser.add_argument("--chip", action="append", help="only this one (may be repeated)")
    parser.add_argument("--only", action="append", choices=PARTS, help="only this part (may be repeated)")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--layers", action="store_true", help="coefficients layer by layer for every model")
    parser.add_argument("--json", type=pathlib.Path, help="also write the figures here")
    arguments = parser.parse_args()
    tools, bars, parts = Tools(arguments.build), Bars(), arguments.only or PARTS
    chips, rockchips = ([chip for chip in tools.chips(of) if not arguments.chip or chip in arguments.chip]
                        for of in (CHIPS, ROCKCHIP_CHIPS))
    models, result = models_here(), {}
    if "speed" in parts:
        result["speed"] = speed.run(tools, chips + rockchips, models, arguments.repeats, bars)
    if "coefficients" in parts:
        result["coefficients"] = coefficients.run(tools, chips, models, bars, arguments.layers)
    if "modelled" in parts:
        result["modelled"] = modelled.run(tools, chips, models, bars)
        result["rockchip"] = rockchip.run(tools, rockchips, models, bars)
    if "captures" in parts:
        result["captures"] = modelled.run_captures(tools, chips)
    if "timing" in parts:
        result["timing"] = timing_model.run(tools, bars)
        result["rockchip timing"] = rockchip_timing.run(tools, bars)
    bars.show()
    result["bars"] = bars.rows
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
