"""Three sources asked at once, one of them unreliable: a workflow written in Python.

Shows functions as nodes, retries, parallel branches that join, and an error edge.

    python examples/flaky.py
"""

from ropewalk import NodeContext, Workflow, node, run


@node
def price(product: str) -> float:
    """Looks up a price; fails never."""
    return {"rope": 12.5, "walk": 0.0}.get(product, 1.0)


@node(retry={"maxAttempts": 5, "delay": "200ms"}, timeout="5s")
async def stock(product: str, context: NodeContext) -> int:
    """Counts a stock; the first two attempts find nobody at home."""
    if context.attempt < 3:
        raise ConnectionError(f"the warehouse does not answer (attempt {context.attempt})")
    return len(product) * 10


@node(retry={"maxAttempts": 2, "delay": "100ms"})
def rating(product: str) -> float:
    """Asks for a rating in vain."""
    raise ConnectionError(f"no one rates {product}")


@node
def offer(product: str, price: float, stock: int, rating: float | None = None) -> str:
    """Puts together what came."""
    stars = "unrated" if rating is None else f"{rating} stars"
    return f"{stock} × {product} at {price:.2f} each, {stars}"


workflow = Workflow(
    "flaky",
    input={"type": "object", "required": ["product"], "properties": {"product": {"type": "string"}}},
    timeout="1m",
)
product = workflow.input.product
prices = workflow.node("prices", price, product=product)
stocks = workflow.node("stocks", stock, product=product)
ratings = workflow.node("ratings", rating, product=product)
unrated = workflow.node("unrated", "log", message=f"no rating: {ratings.error.message}")
offers = workflow.node(
    "offers", offer, product=product, price=prices.output, stock=stocks.output, rating=ratings.output
)

[prices, stocks, ratings] >> offers
ratings.on_error() >> unrated >> offers
workflow.output = offers.output

if __name__ == "__main__":
    print(run(workflow, {"product": "rope"}))
