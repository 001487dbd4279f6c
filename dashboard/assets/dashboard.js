// The script of the dashboard. Every page works without it; it adds changes as they
// happen, instants in the zone of the viewer, and keys.
(() => {
  "use strict";

  // Instants: relative in the text, absolute in the title.
  const units = [["y", 31536000], ["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const span = (seconds) => {
    for (let i = 0; i < units.length; i++) {
      const [name, size] = units[i];
      if (seconds < size) continue;
      let text = Math.floor(seconds / size) + " " + name;
      if (i + 1 < units.length) {
        const rest = Math.floor((seconds % size) / units[i + 1][1]);
        if (rest > 0) text += " " + rest + " " + units[i + 1][0];
      }
      return text;
    }
    return "0 s";
  };
  const absolute = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });
  const showTimes = () => {
    for (const el of document.querySelectorAll("time")) {
      const at = Date.parse(el.dateTime);
      if (Number.isNaN(at)) continue;
      if (el.hasAttribute("data-absolute")) {
        el.textContent = absolute.format(at);
        continue;
      }
      const seconds = (at - Date.now()) / 1000;
      const text = Math.abs(seconds) < 1 ? "now" : seconds > 0 ? "in " + span(seconds) : span(-seconds) + " ago";
      if (el.textContent !== text) el.textContent = text;
      const title = absolute.format(at);
      if (el.title !== title) el.title = title;
    }
  };
  showTimes();
  setInterval(() => { if (!document.hidden) showTimes(); }, 1000);

  // The key / goes to the search, as in other tools.
  document.addEventListener("keydown", (e) => {
    if (e.key !== "/" || e.ctrlKey || e.metaKey || e.altKey) return;
    if (/^(input|textarea|select)$/i.test(e.target.tagName)) return;
    const find = document.getElementById("find");
    if (find) { e.preventDefault(); find.focus(); }
  });

  // Changes: the server says that the page has changed, and the regions of the page
  // are replaced by those of the page as it is now.
  const live = document.body.dataset.live;
  const follows = document.getElementById("follows");
  if (!live || !window.EventSource) return;

  // What keeps the page from being current: the stream is lost, Redis does not answer,
  // or the page cannot be read.
  const outage = document.getElementById("outage");
  const failed = document.querySelector("[data-failed]");
  let lost = false, down = outage && !outage.hidden, unread = false, shown = document.body.dataset.read;
  const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
  const status = () => {
    if (!follows) return;
    const stale = lost || down || unread;
    follows.hidden = false;
    follows.textContent = stale ? (lost ? "connection lost, " : "") + "stale since " + clock.format(Date.parse(shown)) : "live";
    follows.classList.toggle("off", !!stale);
  };
  const instant = (at) => {
    const el = document.createElement("time");
    el.dateTime = at;
    return el;
  };
  const showOutage = (since) => {
    down = true;
    if (outage) {
      document.getElementById("outage-since").replaceChildren(instant(since));
      if (!failed) document.getElementById("outage-read").replaceChildren(" What is shown was read ", instant(shown), ".");
      outage.hidden = false;
      showTimes();
    }
    status();
  };
  const used = (region) => {
    const selection = document.getSelection();
    return region.contains(document.activeElement) && document.activeElement.matches("input, textarea, select")
      || selection && !selection.isCollapsed && region.contains(selection.anchorNode);
  };
  // replace keeps the focus, the open parts and the scroll position of a region.
  const replace = (old, fresh) => {
    if (old.innerHTML === fresh.innerHTML) return;
    const active = old.contains(document.activeElement) ? document.activeElement : null;
    const href = active && active.getAttribute("href");
    const label = active && active.getAttribute("aria-label");
    const open = [...old.querySelectorAll("details[open]")].map((d) => d.id);
    const left = [...old.querySelectorAll(".scroll")].map((s) => s.scrollLeft);
    old.replaceChildren(...fresh.childNodes);
    for (const id of open) {
      const d = document.getElementById(id);
      if (d && d.tagName === "DETAILS") d.open = true;
    }
    old.querySelectorAll(".scroll").forEach((s, i) => { s.scrollLeft = left[i] || 0; });
    if (active) {
      for (const el of old.querySelectorAll("[href], [tabindex]")) {
        if (href ? el.getAttribute("href") === href : label && el.getAttribute("aria-label") === label) {
          el.focus({ preventScroll: true });
          break;
        }
      }
    }
  };
  let reading = false, again = false;
  const read = async () => {
    if (!follows) return;
    if (reading) { again = true; return; }
    reading = true;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      unread = !answer.ok;
      if (answer.ok) {
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        const main = document.getElementById("main");
        for (const old of document.querySelectorAll("[data-region]")) {
          const fresh = page.getElementById(old.id);
          if (!fresh) { old.replaceChildren(); continue; }
          if (!used(old)) replace(old, fresh);
        }
        // A region that the page did not have is at the end, as in the new page.
        for (const fresh of page.querySelectorAll("[data-region]")) {
          if (!document.getElementById(fresh.id)) main.append(document.adoptNode(fresh));
        }
        shown = page.body.dataset.read || shown;
        showTimes();
      }
    } catch {
      unread = true;
    }
    reading = false;
    status();
    if (again) { again = false; setTimeout(read, 500); } else if (unread && !document.hidden) setTimeout(read, 5000);
  };

  let source = null;
  const start = () => {
    if (source || document.hidden) return;
    source = new EventSource(live);
    source.addEventListener("watching", () => {
      if (lost) read();
      lost = false;
      status();
    });
    source.addEventListener("change", read);
    source.addEventListener("outage", (e) => showOutage(JSON.parse(e.data)));
    source.addEventListener("answers", () => {
      if (!down) return;
      if (failed) { location.reload(); return; }
      down = false;
      if (outage) outage.hidden = true;
      read();
    });
    source.onerror = () => {
      lost = true;
      status();
      if (source && source.readyState === EventSource.CLOSED) {
        source = null;
        setTimeout(start, 10000);
      }
    };
  };
  const stop = () => {
    if (source) source.close();
    source = null;
  };
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) { stop(); } else { start(); read(); }
  });
  window.addEventListener("pagehide", stop);
  window.addEventListener("pageshow", start);
  start();
})();
