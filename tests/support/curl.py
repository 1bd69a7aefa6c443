"""As much of curl as README.md uses, for machines without: curl -s URL [-H HEADER] [-d BODY] [-X METHOD]"""

import argparse
import sys
import urllib.error
import urllib.request


def main() -> int:
    parser = argparse.ArgumentParser("curl")
    parser.add_argument("url")
    parser.add_argument("-s", action="store_true")
    parser.add_argument("-H", dest="headers", action="append", default=[])
    parser.add_argument("-d", dest="body")
    parser.add_argument("-X", dest="method")
    options = parser.parse_args()

    headers = {
        name.strip(): value.strip() for name, _, value in (line.partition(":") for line in options.headers)
    }
    body = options.body.encode() if options.body is not None else None
    request = urllib.request.Request(options.url, data=body, headers=headers, method=options.method)
    straight = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with straight.open(request, timeout=30) as answer:
            sys.stdout.buffer.write(answer.read())
    except urllib.error.HTTPError as refused:
        sys.stdout.buffer.write(refused.read())
    return 0


if __name__ == "__main__":
    sys.exit(main())
