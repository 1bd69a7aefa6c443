"""Health checks report the true state of a process."""

import httpx2 as httpx


async def test_a_serving_process_reports_ready(api: httpx.AsyncClient) -> None:
    alive, ready = await api.get("/healthz"), await api.get("/readyz")

    assert (alive.status_code, alive.json()) == (200, {"status": "alive"})
    assert ready.status_code == 200
    assert ready.json() == {"status": "ready", "ledger": "up", "holds": "up", "migrations": "done"}
    assert ready.headers["cache-control"] == "no-store"


async def test_every_answer_is_counted(api: httpx.AsyncClient) -> None:
    await api.get("/healthz")
    numbers = await api.get("/metrics")

    assert numbers.headers["content-type"].startswith("text/plain; version=")
    assert 'holdfast_http_answers_total{route="get_healthz",status="200"}' in numbers.text
    assert 'holdfast_http_seconds_count{route="get_healthz"}' in numbers.text


async def test_the_front_page_is_for_people_and_leads_to_the_reference(api: httpx.AsyncClient) -> None:
    front = await api.get("/", follow_redirects=True)
    document = await api.get("/api/v1/openapi.json")

    assert front.status_code == 200
    assert 'href="/docs"' in front.text
    assert document.json()["openapi"] == "3.1.0"
