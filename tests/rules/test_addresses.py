"""An address is written as people write it where the venue is."""

import pytest

from holdfast.site.i18n import format_address


@pytest.mark.parametrize(
    ("place", "written"),
    [
        (("5 Upper Ground", "SE1 9PD", "London", "GB"), "5 Upper Ground, London SE1 9PD"),
        (("Paul-Lincke-Ufer 22", "10999", "Berlin", "DE"), "Paul-Lincke-Ufer 22, 10999 Berlin"),
        (("37 quai de Valmy", "75010", "Paris", "FR"), "37 quai de Valmy, 75010 Paris"),
        (("14 Marine Lines Road", "400020", "Mumbai", "IN"), "14 Marine Lines Road, Mumbai 400020"),
        (("1 Broadway", "10004", "New York", "US"), "1 Broadway, New York 10004"),
        (("", "10115", "Berlin", "DE"), "10115 Berlin"),
        (("Main Street 1", "", "Dublin", "IE"), "Main Street 1, Dublin"),
    ],
)
def test_the_postal_code_stands_where_the_country_puts_it(
    place: tuple[str, str, str, str], written: str
) -> None:
    street, postal_code, city, country = place
    assert format_address(street, postal_code, city, country) == written
