"""The node types that come with Ropewalk."""

from ropewalk.nodes.base import NodeType
from ropewalk.nodes.control import Fail, Filter, If, Log, Merge, Noop, Set, Switch
from ropewalk.nodes.email import EmailSend
from ropewalk.nodes.http import HttpRequest
from ropewalk.nodes.python import Python
from ropewalk.nodes.waiting import Approval, Delay, Subworkflow, WaitFor

TYPES: tuple[type[NodeType], ...] = (
    *(Set, If, Switch, Merge, Filter, Noop, Fail, Log),
    *(Delay, WaitFor, Approval, Subworkflow),
    *(Python, HttpRequest, EmailSend),
)
