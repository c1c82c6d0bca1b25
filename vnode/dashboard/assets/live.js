// Shows the page anew when the server says that something has changed. Only what is inside of #live
// is replaced, and the focus stays where it was. Without this script the page reloads by itself.
"use strict";
(() => {
  const PATIENCE = 10000; // milliseconds between two looks where no stream can be had
  const pulse = document.getElementById("pulse");
  let asking = false;
  let again = false;

  function say(state, words) {
    pulse.dataset.state = state;
    pulse.textContent = words;
  }

  function show(fresh) {
    const live = document.getElementById("live");
    const next = fresh.getElementById("live");
    if (!next) return;
    const focused = live.contains(document.activeElement) ? document.activeElement.id : "";
    live.replaceWith(document.adoptNode(next));
    document.getElementById("clock").replaceWith(document.adoptNode(fresh.getElementById("clock")));
    const found = focused && document.getElementById(focused);
    if (found) found.focus({ preventScroll: true });
  }

  function refresh() {
    if (asking || document.hidden) {
      again = true;
      return;
    }
    asking = true;
    again = false;
    const request = new XMLHttpRequest();
    request.open("GET", location.href);
    request.responseType = "document";
    request.onload = () => {
      if (request.response && request.response.getElementById("live")) show(request.response);
    };
    request.onloadend = () => {
      asking = false;
      if (again) refresh();
    };
    request.send();
  }

  function listen() {
    const events = new EventSource(document.body.dataset.events);
    events.onopen = () => {
      say("live", "live");
      refresh();
    };
    events.addEventListener("changed", refresh);
    events.onerror = () => {
      say("lost", "not connected");
      if (events.readyState === EventSource.CLOSED) {
        setTimeout(() => {
          refresh();
          listen();
        }, PATIENCE);
      }
    };
  }

  document.addEventListener("visibilitychange", () => {
    if (again && !document.hidden) refresh();
  });
  listen();
})();
