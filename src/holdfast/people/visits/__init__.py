"""People who come by browser: who a cookie speaks for, and guests, who have no password."""
