"""Brings a data source and dashboards into a Grafana that exists already.

push
  data source   by its uid: made if it is not there, else brought up to date
  folder        by its title: made if it is not there
  dashboards    by their uids, overwriting what is there
  check         Grafana is asked whether it reaches Prometheus

Pushing twice leaves what pushing once does. Whatever a person has set in the data source stays
(its name, credentials, being the default); only the address is ours, if one was given.

grafana-api finds data sources for an update by numeric ids, which Grafana 13 does not answer any
more; all here goes by uid. The token is in one header and nowhere else: not in a message either,
even if the server should repeat it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from grafana_api.grafana_api import GrafanaException
from grafana_api.grafana_face import GrafanaFace
from requests import exceptions as http

UID = "rejoinder-prometheus"  # the dashboards name their data source by it
NAME = "Rejoinder"  # of the data source, until somebody calls it otherwise
PROMETHEUS = "http://127.0.0.1:9090"  # of a new data source, if no other is given
SCRAPE_INTERVAL = "5s"  # by which Grafana chooses what a rate is taken over
TIMEOUT = 10.0  # seconds for one answer

# Of a data source that is there, what an update repeats so that it stays.
_KEPT = (
    "name",
    "access",
    "isDefault",
    "basicAuth",
    "basicAuthUser",
    "withCredentials",
    "jsonData",
    "version",
)
_SHOWN = 200  # characters of what a server says


class GrafanaRefused(ValueError):
    """Grafana does not do what it was asked; something that was given must change."""

    exit_code = 2


class GrafanaUnusable(OSError):
    """There is no Grafana at the address, or it fails."""

    exit_code = 4


@dataclass
class Pushed:
    """What a push has done."""

    data_source: str = ""  # created, updated, or left: it is provisioned by file
    prometheus: str = ""  # the data source's address
    folder: str = ""
    dashboards: dict[str, str] = field(default_factory=dict)  # addresses, by uid
    unreached: str = ""  # why Grafana does not reach Prometheus, if it does not


class Grafana:
    """A Grafana server, for one who holds a token of it."""

    def __init__(self, url: str, token: str) -> None:
        self.url = checked_url("--url", url)
        self._token = checked_token(token)
        parts = urlsplit(self.url)
        prefix = parts.path.strip("/")
        self._face = GrafanaFace(
            auth=self._token,
            host=parts.netloc,
            protocol=parts.scheme,
            url_path_prefix=f"{prefix}/" if prefix else "",
            timeout=TIMEOUT,
        )
        session = self._face.api.s
        session.max_redirects = 0  # a redirected POST would become a GET
        session.headers["Accept"] = "application/json"

    def push(self, dashboards: list[dict[str, Any]], prometheus: str | None, folder: str) -> Pushed:
        """Bring everything up to date; the dashboards are in Grafana's own format."""
        done = Pushed(folder=folder)
        done.data_source, done.prometheus = self._put_data_source(prometheus)
        folder_uid = self._folder(folder)
        for dashboard in dashboards:
            done.dashboards[dashboard["uid"]] = self._put_dashboard(dashboard, folder_uid)
        done.unreached = self._why_unreached()
        return done

    def _put_data_source(self, prometheus: str | None) -> tuple[str, str]:
        doing = "the data source"
        there = self._ask(doing, lambda: self._face.api.GET(f"/datasources/uid/{UID}"), or_none=404)
        if there is None:
            wanted = _data_source(prometheus or PROMETHEUS)
            self._ask(doing, lambda: self._face.datasource.create_datasource(wanted))
            return "created", str(wanted["url"])
        if there.get("readOnly"):  # provisioned by file, as compose does it
            fixed = str(there.get("url")).rstrip("/")
            if prometheus not in (None, fixed):
                raise GrafanaRefused(
                    f"--prometheus-url: the data source {UID} is provisioned by a file of Grafana's"
                    f" and stays at {fixed}; change that file, or leave out the option"
                )
            return "left", fixed
        kept = {name: there[name] for name in _KEPT if name in there}
        wanted = _data_source(prometheus or there.get("url") or PROMETHEUS) | kept
        self._ask(doing, lambda: self._face.api.PUT(f"/datasources/uid/{UID}", json=wanted))
        return "updated", str(wanted["url"])

    def _folder(self, title: str) -> str:
        """Its uid."""
        doing = f"the folder {title!r}"
        for folder in self._ask(doing, self._face.folder.get_all_folders, kind=list):
            if isinstance(folder, dict) and folder.get("title") == title:
                return str(folder.get("uid"))
        return str(self._ask(doing, lambda: self._face.folder.create_folder(title)).get("uid"))

    def _put_dashboard(self, dashboard: dict[str, Any], folder_uid: str) -> str:
        """The address where it can be seen."""
        body = {
            "dashboard": dashboard | {"id": None},
            "folderUid": folder_uid,
            "message": "rejoinder grafana push",
            "overwrite": True,
        }
        doing = f"the dashboard {dashboard['title']!r}"
        saved = self._ask(doing, lambda: self._face.dashboard.update_dashboard(body))
        origin = "{0.scheme}://{0.netloc}".format(urlsplit(self.url))
        return f"{origin}{saved['url']}" if "url" in saved else f"{self.url}/d/{dashboard['uid']}"

    def _why_unreached(self) -> str:
        """What Grafana says when it tries to reach Prometheus; nothing if it does."""
        try:
            self._face.api.GET(f"/datasources/uid/{UID}/health")
        except GrafanaException as error:
            if error.status_code == 404:  # an older Grafana does not say
                return ""
            return self._said(error) or f"status {error.status_code}"
        except (http.RequestException, ValueError, TypeError) as error:
            return f"no answer ({type(error).__name__})"
        return ""

    def _ask(
        self,
        what: str,
        call: Callable[[], Any],
        *,
        kind: type = dict,
        or_none: int | None = None,
    ) -> Any:
        """Do a call of the API; the answer must be of a kind, or None at a certain status."""
        with self._errors_explained(what):
            try:
                answer = call()
            except GrafanaException as error:
                if error.status_code == or_none and isinstance(error.response, dict):
                    return None
                raise
        if not isinstance(answer, kind):
            raise self._foreign()
        return answer

    @contextmanager
    def _errors_explained(self, what: str) -> Iterator[None]:
        try:
            yield
        except GrafanaException as error:
            raise self._told(what, error) from None
        except http.SSLError:
            raise GrafanaUnusable(
                f"{self.url}: its certificate is not trusted, or it does not speak TLS; "
                "REQUESTS_CA_BUNDLE may name a file with your authority"
            ) from None
        except http.Timeout:
            raise GrafanaUnusable(f"{self.url}: no answer within {TIMEOUT:.0f} seconds") from None
        except http.ConnectionError:
            raise GrafanaUnusable(f"{self.url}: nothing answers there") from None
        except http.TooManyRedirects:
            raise GrafanaRefused(
                f"--url: {self.url} leads elsewhere; give the address it leads to (https?)"
            ) from None
        except (http.RequestException, ValueError, TypeError):
            # TypeError: grafana-api takes text with the word "message" in it for an object.
            raise self._foreign() from None

    def _told(self, what: str, error: GrafanaException) -> Exception:
        """What a status means, and what to do about it."""
        status = error.status_code
        said = f"{status}: {self._said(error)}".removesuffix(": ")
        if status < 500 and not isinstance(error.response, dict):
            return self._foreign(f" (status {status})")
        if status == 401:
            return GrafanaRefused(
                f"--token: Grafana does not know this token ({said}); make one under "
                "Administration, Service accounts"
            )
        if status == 403:
            return GrafanaRefused(
                f"--token: its service account may not write {what} ({said}); "
                "data sources need the role Admin"
            )
        if status in (404, 405):  # every Grafana that we know has it
            return GrafanaUnusable(
                f"{self.url}: there is no API for {what} ({said}); "
                "is the path right, and is this Grafana 9 or newer?"
            )
        if status in (409, 412):
            return GrafanaRefused(
                f"{what} is in conflict with another one ({said}); "
                "rename or remove that one, or choose another --folder"
            )
        if status >= 500:
            return GrafanaUnusable(f"{self.url}: Grafana failed at {what} ({said})")
        return GrafanaRefused(f"Grafana refuses {what} ({said})")

    def _foreign(self, how: str = "") -> Exception:
        return GrafanaUnusable(
            f"{self.url}: what answers there is not Grafana's API{how}; is the path right?"
        )

    def _said(self, error: GrafanaException) -> str:
        """The server's own words, on one line, without the token."""
        response = error.response
        words = response.get("message", "") if isinstance(response, dict) else ""
        return " ".join(str(words).replace(self._token, "…").split())[:_SHOWN]


def checked_url(option: str, url: str) -> str:
    """An http address without credentials, query or final slash."""
    try:
        parts = urlsplit(url)
        wrong = parts.scheme not in ("http", "https") or not parts.hostname
        _ = parts.port  # refuses what is no number
    except ValueError:
        wrong = True
        parts = urlsplit("")
    if wrong or any(c.isspace() for c in url):
        raise ValueError(f"{option}: an address such as http://127.0.0.1:3000 is needed")
    if "@" in parts.netloc:
        raise ValueError(f"{option}: an address without user and password is needed")
    if parts.query or parts.fragment:
        raise ValueError(f"{option}: an address without ? and # is needed")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def checked_token(token: str) -> str:
    """One that can be sent; what cannot would otherwise show up in an error of the HTTP library."""
    token = token.strip()
    if not re.fullmatch(r"[\x21-\x7e]+", token):
        raise ValueError("--token: a token has letters, digits and signs, and nothing else")
    return token


def _data_source(url: str) -> dict[str, Any]:
    return {
        "uid": UID,
        "name": NAME,
        "type": "prometheus",
        "access": "proxy",
        "url": url,
        "jsonData": {"httpMethod": "POST", "timeInterval": SCRAPE_INTERVAL},
    }
