"""Where the server has what is fetched from it."""

import pytest

from dashboard.addresses import address


@pytest.mark.parametrize(("base", "found"), [("", "/metrics"), ("tools", "/tools/metrics"), ("/a/b/", "/a/b/metrics")])
def test_the_base_path_stands_before_every_address(monkeypatch, base, found):
    monkeypatch.setattr("streamlit.get_option", {"server.baseUrlPath": base}.get)
    assert address("/metrics") == found
