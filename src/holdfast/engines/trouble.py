"""What an operator can put right: told in one line, never as a traceback."""


class Trouble(Exception):
    """Something expected is in the way. The text says what it is and what to do next, in one line."""
