"""The two ways an expression says no: with a place (to the author) and, inside, still without one."""

from ropewalk.core.errors import RopewalkError


class ExpressionError(RopewalkError):
    """An expression cannot be compiled, or has no value; `position` is an offset into the string it was written in."""

    def __init__(self, message: str, position: int) -> None:
        self.message = message
        self.position = position
        super().__init__(f"at {position}: {message}")


class Refused(Exception):
    """An operation declines its operands; the caller, which knows the place, makes an `ExpressionError` of this."""

    def __init__(self, message: str) -> None:
        self.message = message
        super().__init__(message)
