"""The addresses that webhooks may go to: any address that is not plainly public is refused."""

import pytest

from holdfast.webhooks_out.endpoint import check_url, is_public
from holdfast.webhooks_out.errors import BadEndpointUrl

TRICKS = {
    "http": "http://hall.example.org/hooks",
    "another scheme": "gopher://hall.example.org/",
    "a file": "file://localhost/etc/passwd",
    "loopback": "https://127.0.0.1/",
    "loopback, elsewhere in its net": "https://127.8.8.8/",
    "short loopback": "https://127.1/",
    "decimal": "https://2130706433/",
    "octal": "https://0177.0.0.1/",
    "octal with many zeros": "https://00000177.0.0.1/",
    "hexadecimal": "https://0x7f000001/",
    "hexadecimal parts": "https://0x7f.0x0.0x0.0x1/",
    "an empty hexadecimal": "https://127.0.0.0x/",
    "nothing at all": "https://0/",
    "any address": "https://0.0.0.0/",
    "a dot behind it": "https://127.0.0.1./",
    "private": "https://10.0.0.8/",
    "private, too": "https://192.168.1.1:8443/",
    "a cloud's metadata": "https://169.254.169.254/latest/meta-data/",
    "another cloud's": "https://100.100.100.200/",
    "a third one's": "https://168.63.129.16/",
    "IPv6 loopback": "https://[::1]/",
    "IPv6 any": "https://[::]/",
    "IPv4 in IPv6": "https://[::ffff:127.0.0.1]/",
    "the same in hexadecimal": "https://[::ffff:7f00:1]/",
    "a public one in IPv6": "https://[::ffff:8.8.8.8]/",
    "NAT64": "https://[64:ff9b::169.254.169.254]/",
    "6to4": "https://[2002:7f00:1::]/",
    "unique local": "https://[fd00:ec2::254]/",
    "link local with a zone": "https://[fe80::1%25eth0]/",
    "a name and a password": "https://hall.example.org@127.0.0.1/",
    "a password that looks like a host": "https://hall.example.org:443@10.0.0.1/",
    "a backslash": "https://hall.example.org\\@127.0.0.1/",
    "a fragment": "https://hall.example.org/#@127.0.0.1/",
    "a percent sign in the host": "https://%6c%6f%63alhost/",
    "full-width digits": "https://１２７.０.０.１/",
    "a dot that is none": "https://127。0。0。1/",
    "localhost": "https://localhost/",
    "a localhost of its own": "https://hooks.localhost/",
    "a name without a dot": "https://redis:6379/",
    "a cloud's name for itself": "https://metadata.google.internal/",
    "a line break": "https://hall.example.org/\r\nHost: redis",
    "a tab in the scheme": "ht\ttps://hall.example.org/",
    "a space before it": " https://hall.example.org/",
    "a port that is none": "https://hall.example.org:99999/",
    "port nought": "https://hall.example.org:0/",
    "an empty label": "https://hall..example.org/",
    "no host": "https:///hooks",
}


@pytest.mark.parametrize("url", TRICKS.values(), ids=TRICKS)
def test_a_trick_is_refused(url: str) -> None:
    with pytest.raises(BadEndpointUrl):
        check_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "https://hall.example.org/hooks",
        "https://hall.example.org",
        "https://xn--bcher-kva.example.org:8443/a/b?token=%20x&y=1",
        "https://127.hall.example.org/",
        "https://8.8.8.8/hooks",
        "https://[2606:4700:4700::1111]/hooks",
    ],
)
def test_a_public_address_is_accepted(url: str) -> None:
    check_url(url)


@pytest.mark.parametrize("url", ["http://127.0.0.1:8000/", "http://[::1]:9/", "http://localhost/x"])
def test_a_demo_may_send_to_itself(url: str) -> None:
    check_url(url, lenient=True)


@pytest.mark.parametrize("url", ["http://2130706433/", "http://a@127.0.0.1/", "file://localhost/etc/passwd"])
def test_a_demo_reads_urls_by_the_same_narrow_rule(url: str) -> None:
    with pytest.raises(BadEndpointUrl):
        check_url(url, lenient=True)


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "172.31.0.1", "100.64.0.1", "169.254.1.1", "224.0.0.1", "255.255.255.255"),
        *("::1", "::ffff:10.0.0.1", "fe80::1%2", "fc00::1", "ff02::1", "2001:db8::1", "64:ff9b::a00:1"),
        *("2001:0:1::1", "", "hall.example.org", "127.1"),
    ],
)
def test_an_address_that_is_not_public_is_known(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "172.32.0.1", "2606:4700:4700::1111"])
def test_a_public_address_is_known(address: str) -> None:
    assert is_public(address)
