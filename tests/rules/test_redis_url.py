"""Addresses of Redis, and the slots of its keys."""

from pathlib import Path

import pytest
from redis.crc import key_slot

import holdfast
from holdfast.claim import pool_keys
from holdfast.engines.open_redis import open_redis
from holdfast.engines.redis import KEY_LINE, RedisServer, Script
from holdfast.engines.redis_cluster import RedisCluster
from holdfast.engines.redis_sentinel import SentinelServer
from holdfast.engines.redis_url import find_key, parse_redis_url, slot_of
from holdfast.web.puzzles import KEY
from holdfast.web.rate_limits import UNUSED, bucket_key


class TestAddress:
    @pytest.mark.parametrize(
        ("url", "kind"),
        [
            ("redis://127.0.0.1:6379/0", RedisServer),
            ("rediss://user:secret@cache.internal:6380/1", RedisServer),
            ("unix:///run/valkey.sock", RedisServer),
            ("redis+sentinel://one:26379,two/box/0", SentinelServer),
            ("rediss+cluster://one,two:7001", RedisCluster),
        ],
    )
    def test_its_scheme_chooses_the_client(self, url: str, kind: type) -> None:
        assert type(open_redis(url, links_max=1, timeout_s=1)) is kind

    def test_a_cluster_has_hosts_a_login_and_options_for_all_nodes(self) -> None:
        place = parse_redis_url("rediss+cluster://ann:p%40ss@one:7001,two,[::1]:7003?ssl_ca_certs=/ca.pem")

        assert place.hosts == (("one", 7001), ("two", 6379), ("::1", 7003))
        assert (
            place.server_url(("10.0.0.7", 7009))
            == "rediss://ann:p%40ss@10.0.0.7:7009/0?ssl_ca_certs=%2Fca.pem"
        )
        assert place.server_url(("::1", 1)).startswith("rediss://ann:p%40ss@[::1]:1/0")

    def test_sentinels_have_a_login_of_their_own(self) -> None:
        place = parse_redis_url("redis+sentinel://ann:secret@one,two:5/box/3?sentinel_password=p%40ss")

        assert (place.service, place.hosts) == ("box", (("one", 26379), ("two", 5)))
        assert place.server_url(("db", 6379)) == "redis://ann:secret@db:6379/3"
        assert place.url_of_sentinel(("one", 26379)) == "redis://:p%40ss@one:26379"

    @pytest.mark.parametrize(
        ("url", "wrong"),
        [
            ("redis+cluster://one/1", "database 0 only"),
            ("redis+sentinel://one:26379", "name the service"),
            ("redis+sentinel://one:26379/box/first", "name the service"),
            ("redis+cluster://one,,two", "a host is missing"),
            ("redis+pigeons://one", r"redis\+cluster"),
            ("http+cluster://one", r"redis\+cluster"),
        ],
    )
    def test_a_wrong_one_is_explained_without_its_password(self, url: str, wrong: str) -> None:
        with pytest.raises(ValueError, match=wrong) as raised:
            parse_redis_url(url.replace("://", "://ann:secret@"))

        assert "secret" not in str(raised.value)


def all_scripts() -> list[Script]:
    """Every file of the product that names keys."""
    root = Path(holdfast.__file__).parent
    files = [file for file in root.rglob("*.lua") if KEY_LINE.search(file.read_text())]
    return [Script(".".join(("holdfast", *file.relative_to(root).parent.parts)), file.stem) for file in files]


class TestSlots:
    @pytest.mark.parametrize("key", ["a", "units:{7}", "{}a", "{a", "a}b{c}", "{a}{b}", "{{a}}", "größe:{ü}"])
    def test_is_that_of_redis_py(self, key: str) -> None:
        assert slot_of(key) == key_slot(key.encode())

    def test_every_script_has_its_keys_in_one_slot(self) -> None:
        """A cluster refuses a script whose keys are in several. A script with new keys belongs here, too."""
        limits = [bucket_key("login", "ann", "::1"), bucket_key("login-house"), UNUSED, KEY]
        keys_of = {"limit": [limits, limits], "append": [["bus:{facts}"]]}
        pools = [list(pool_keys(pool_id)) for pool_id in (7, 800_123, "dispatch:drivers")]
        scripts = {script.name: script for script in all_scripts()}

        assert {"hold", "claim", "settle", "limit", "append", "release_expired"} <= scripts.keys()
        for script in scripts.values():
            for keys in keys_of.get(script.name, pools):
                assert len({slot_of(key) for key in keys}) == 1, script.name

    def test_every_script_of_a_map_gets_the_run_id_from_its_link(self) -> None:
        of_maps = {script.name for script in all_scripts() if script.takes_run_id}

        assert of_maps == {
            *("hold", "release_expired", "claim", "settle", "read", "free_units"),
            *("build", "begin_rebuild", "rebuild"),
        }

    @pytest.mark.parametrize(
        ("command", "key"),
        [
            (("GET", "a"), "a"),
            (("XREAD", "COUNT", 5, "BLOCK", 7, "STREAMS", "a", "b", "0-0", "0-0"), "a"),
            (("XINFO", "STREAM", "a"), "a"),
            (("EVAL", "return 1", 1, "a"), "a"),
            (("PING",), None),
            (("TIME",), None),
        ],
    )
    def test_the_key_of_a_command_is_found(self, command: tuple[object, ...], key: str | None) -> None:
        assert find_key(command) == key
