"""What an execution takes is counted the same however busy the machine is."""

import pytest
import uvloop

from ropewalk.bench.contenders import FLOOR, NATIVE
from tools.bytecodes import count, table

EXECUTIONS = 10


@pytest.mark.parametrize("contender", [NATIVE, FLOOR])
def test_each_node_of_a_diamond_is_counted_once(contender: str):
    counted = uvloop.run(count(contender, "diamond", EXECUTIONS))

    [work] = [code for code in counted.calls if code.co_qualname == "work"]
    assert counted.calls[work] == 5 * EXECUTIONS
    assert next(table(counted, EXECUTIONS, 1)).endswith("all: bytecodes, calls")
