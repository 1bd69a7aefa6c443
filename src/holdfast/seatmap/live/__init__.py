"""Maps that move: every change of a show's seats, told to everybody who watches (R8)."""
