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
  if (!live || !follows || !window.EventSource) return;

  const say = (text, good) => {
    follows.hidden = false;
    follows.textContent = text;
    follows.classList.toggle("off", !good);
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
    if (reading) { again = true; return; }
    reading = true;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
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
        showTimes();
      }
    } catch {
      // The stream reports the outage.
    }
    reading = false;
    if (again) { again = false; setTimeout(read, 500); }
  };

  let source = null;
  const start = () => {
    if (source || document.hidden) return;
    source = new EventSource(live);
    source.addEventListener("watching", () => say("live", true));
    source.addEventListener("change", read);
    source.onerror = () => {
      say("connection lost", false);
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
