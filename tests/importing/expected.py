"""What the documents of n8n in `documents/` become: `python -m tests.importing.expected` writes it anew."""

import json
from pathlib import Path

import yaml

from ropewalk.importing.n8n import workflow_of
from ropewalk.nodes.base import Registry

FOLDER = Path(__file__).parent / "documents"
FILES = sorted(path for path in FOLDER.glob("*.json") if not path.name.endswith(".report.json"))
TYPES = Registry.builtin().infos()


def imported(file):
    return workflow_of(json.loads(file.read_text()), TYPES)


def workflow_file(file):
    return file.with_suffix(".yaml")


def report_file(file):
    return file.with_suffix(".report.json")


def written(found):
    """The workflow and the report as they are kept."""
    workflow = yaml.safe_dump(found.document, sort_keys=False, allow_unicode=True, width=100)
    return workflow, json.dumps(found.report.as_json(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for each in FILES:
        workflow, report = written(imported(each))
        workflow_file(each).write_text(workflow)
        report_file(each).write_text(report)
