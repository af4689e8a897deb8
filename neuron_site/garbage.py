"""How often Python looks for objects that are held by nothing but each other."""

import gc


def collect_seldom() -> None:
    """For the processes that people wait for.

    By default every 700 new objects begin a look, which a request makes many times over while nearly all of its objects
    go by themselves; and every hundredth look goes over all that the libraries hold.
    """
    gc.set_threshold(10_000, 20, 50)
