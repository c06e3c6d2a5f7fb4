# Tasks of a developer; `just` alone lists them (https://just.systems).

# list the tasks
default:
    @just --list

# make the environment from the lock file
setup:
    uv sync --extra dev --extra docs
    uv run pre-commit install

# run the quick tests: at most five minutes on two cores
test *arguments:
    uv run python -m pytest -n 4 {{arguments}}

# run the slow tests: documentation pages, kills, power cuts, matrices of modes
slow *arguments:
    uv run python -m pytest -n 4 -m slow {{arguments}}

# check style, types and layers, and print the measures of the language
lint:
    uv run ruff check .
    uv run ruff format --check .
    uv run mypy
    uv run lint-imports
    uv run python -m tools.language

# build the documentation site into build/site
docs:
    uv run mkdocs build --strict

# serve the documentation site at http://127.0.0.1:8000 while pages are written
docs-serve:
    uv run mkdocs serve

# run the gate, as before each merge
gate:
    bash .ci/run

# lock the dependencies anew, and list their licences
lock:
    uv lock
    uv run python docs/licences.py > build/licences.md && mv build/licences.md docs/reference/licences.md

# write what a server is installed from with `pip install --require-hashes -r build/requirements.txt`
requirements:
    uv export --frozen --no-emit-project --extra local --extra server -o build/requirements.txt

# build the wheel and the source distribution of a version whose changelog section is complete
release: gate
    uv run python -m build
