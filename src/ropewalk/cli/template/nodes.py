"""Node types of this project: plain functions, sync or async. Parameters and result are checked by their type hints."""

from ropewalk import NodeContext, NodeFailure, node


@node
def price(item: str, quantity: int) -> float:
    """What so many of an item cost."""
    prices = {"rope": 12.5, "hook": 3.0}
    if item not in prices:
        # Permanent: trying again would not help, so its run becomes a dead letter at once. Others are retried.
        raise NodeFailure.permanent(f"no shop sells {item!r}")
    return prices[item] * quantity


@node
async def stock(item: str, context: NodeContext) -> int:
    """How many there are. The stock system does not answer the first attempt, so the node is retried."""
    if context.attempt == 1:
        raise ConnectionError("the warehouse does not answer")
    return 40 if item == "rope" else 7
