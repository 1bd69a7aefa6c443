"""What a User-Agent says of a device, for the list of sessions: "Firefox, Android". No I/O."""

# The first that is found: many browsers also name the ones they descend from.
BROWSERS = (
    ("Edg", "Edge"),
    ("OPR", "Opera"),
    ("SamsungBrowser", "Samsung Internet"),
    ("Firefox", "Firefox"),
    ("FxiOS", "Firefox"),
    ("CriOS", "Chrome"),
    ("Chrome", "Chrome"),
    ("Safari", "Safari"),
)
SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
)
PROGRAM_LENGTH_MAX = 40


def describe_device(user_agent: str) -> str:
    """Empty: unknown."""
    browser = next((name for mark, name in BROWSERS if mark in user_agent), "")
    system = next((name for mark, name in SYSTEMS if mark in user_agent), "")
    if browser or system:
        return ", ".join(filter(None, (browser, system)))
    return user_agent.partition("/")[0][:PROGRAM_LENGTH_MAX]
