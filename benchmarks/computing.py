"""Questions that the mode ``sparql`` answers by a query, without a model.

Run: python -m benchmarks.computing wtq|geo|own|scale ...; ``--help`` after each says the rest."""

from __future__ import annotations

import argparse

from benchmarks import computing_geo, computing_own, computing_scale, computing_wtq

SETS = {
    "wtq": computing_wtq,
    "geo": computing_geo,
    "own": computing_own,
    "scale": computing_scale,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    sets = parser.add_subparsers(required=True, metavar="SET")
    for name, module in SETS.items():
        about = (module.__doc__ or "").splitlines()[0]
        own = sets.add_parser(name, help=about, description=about)
        module.add_arguments(own)
        own.set_defaults(run=module.run)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
