"""What a list says of what it does not show."""

from ropewalk.cli.backend.bulk_queries import Counted
from ropewalk.cli.backend.project import Project
from ropewalk.cli.views.progress import view_for


def tell_more(project: Project, left: Counted, *words: str) -> None:
    """Say how many more there are and what shows them, beside the answer; nothing where that was all."""
    if left.count and not project.is_json:
        view_for(project).say(f"… {left.words()} more", project.hint(*words))
