// What the pages add when JavaScript is there: each works without it, by reload.
(() => {
  "use strict";
  const $ = (selector, within = document) => within.querySelector(selector);
  const store = {
    get: (key) => { try { return sessionStorage.getItem(key); } catch { return null; } },
    set: (key, value) => { try { value ? sessionStorage.setItem(key, value) : sessionStorage.removeItem(key); } catch { /* private mode */ } },
  };

  // --- The composer: grows, Enter sends, the draft outlives a reload and an expired sign-in ---------------
  const composer = $("#composer");
  const box = composer && $("textarea", composer);
  const draft = composer && `draft:${composer.dataset.draft}`;
  const isAnswering = () => $("[data-answering]") !== null;

  const grow = (area) => {
    if (CSS.supports("field-sizing", "content")) return;
    area.style.height = "auto";
    area.style.height = `${area.scrollHeight}px`;
  };
  const tell = (sentence) => {
    const note = document.createElement("p");
    note.className = "trouble";
    note.textContent = sentence;
    $("#composer-note").replaceChildren(note);
  };

  if (box) {
    if (!box.value) box.value = store.get(draft) || "";
    grow(box);
    box.addEventListener("input", () => { store.set(draft, box.value); grow(box); });
    const newest = $("#turns > :last-child");
    if (matchMedia("(pointer: fine)").matches && (!location.hash || location.hash === `#${newest?.id}`)) {
      // After the load: going to the address's fragment takes the focus away once more.
      addEventListener("load", () => setTimeout(() => box.focus({ preventScroll: true })));
    }
    composer.addEventListener("htmx:afterRequest", (event) => {
      if (event.detail.elt !== composer) return;
      const status = event.detail.xhr.status;
      if (status >= 200 && status < 300) {
        box.value = "";
        store.set(draft, "");
        grow(box);
        toLatest();
      } else if (!status) {
        tell("Neuron could not be reached. Your words are kept here: try again in a moment.");
      } else if (status >= 500 && status !== 503) {
        tell("Something broke on our side. Your words are kept here: try again in a moment.");
      }
      box.focus({ preventScroll: true });
    });
  }
  document.addEventListener("keydown", (event) => {
    const area = event.target.closest?.("#composer textarea");
    // An Enter that ends an input method's composition chooses a word, it does not send.
    if (!area || event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    if (area.value.trim() && !isAnswering()) composer.requestSubmit($(".send", composer));
  });
  document.addEventListener("submit", (event) => {
    if (!event.target.matches("[data-sign-out]")) return;
    try { sessionStorage.clear(); } catch { /* private mode */ }
  });
  for (const field of document.querySelectorAll("[data-time-zone]")) {
    field.value = Intl.DateTimeFormat().resolvedOptions().timeZone || "";
  }

  // --- The page follows an answer only for somebody who is at its end -------------------------------------
  const turns = $("#turns");
  const jump = $("[data-jump]");
  const scroller = document.scrollingElement;
  const isAtEnd = () => scroller.scrollHeight - scroller.scrollTop - innerHeight < 120;
  let following = true;
  function toLatest() {
    following = true;
    // Help lines are read from their first word on, not from their end.
    const bell = $("#turns > .bell:last-child");
    if (bell) bell.scrollIntoView({ block: "start", behavior: "instant" });
    else scroller.scrollTo({ top: scroller.scrollHeight, behavior: "instant" });
    if (jump) jump.hidden = true;
  }
  if (turns && jump) {
    const marked = location.hash && $(CSS.escape(location.hash.slice(1)).replace(/^/, "#"));
    const turnNumber = /^#turn-(\d+)$/.exec(location.hash);
    // A link to a turn that is further up than this page reaches: open the page around it.
    if (turnNumber && !marked && !new URLSearchParams(location.search).has("at")) {
      location.replace(`?at=${turnNumber[1]}${location.hash}`);
    }
    if (!location.hash && $(".turn, .bell", turns)) toLatest();
    following = isAtEnd();
    addEventListener("scroll", () => { following = isAtEnd(); if (following) jump.hidden = true; }, { passive: true });
    new ResizeObserver(() => {
      if (following) toLatest();
      else jump.hidden = isAtEnd() || !isAnswering();
    }).observe(turns);
    jump.addEventListener("click", () => { toLatest(); box?.focus({ preventScroll: true }); });
  }

  // --- An answer's stream that is refused: look at the turn itself, it may be settled, or gone --------------
  document.addEventListener("htmx:sseError", (event) => {
    const turn = event.target.closest?.("[data-answering]");
    if (!turn || event.detail.source.readyState !== EventSource.CLOSED) return;
    htmx.ajax("GET", turn.dataset.url, { source: turn, target: turn, swap: "outerHTML" });
  });

  // --- The side sheet, menus, editing, copying ---------------------------------------------------------------
  const aside = $("#aside");
  let opener = null;
  const closeAside = () => { aside?.replaceChildren(); opener?.focus(); opener = null; };
  document.addEventListener("htmx:afterSwap", (event) => {
    const target = event.detail.target ?? event.target;
    if (target === aside) {
      opener = event.detail.requestConfig?.elt ?? null;
      $("h2", aside)?.focus();
    }
    const edited = document.activeElement === document.body && $(".turn .edit textarea");
    if (edited) { edited.focus(); edited.setSelectionRange(edited.value.length, edited.value.length); }
  });
  document.addEventListener("click", async (event) => {
    if (event.target.closest("[data-close-aside]")) closeAside();
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      if (!menu.contains(event.target)) menu.open = false;
    }
    const copy = event.target.closest(".copy");
    if (!copy) return;
    try {
      await navigator.clipboard.writeText($("code", copy.closest(".code")).textContent);
      copy.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren($("code", copy.closest(".code")));
      copy.textContent = "Selected";
    }
    setTimeout(() => { copy.textContent = "Copy"; }, 2000);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    const menu = $("details.menu[open]");
    if (menu) { menu.open = false; $("summary", menu).focus(); }
    else if (event.target.closest(".edit")) $(".edit a.button", event.target.closest(".turn"))?.click();
    else if (aside?.hasChildNodes()) closeAside();
  });
})();
