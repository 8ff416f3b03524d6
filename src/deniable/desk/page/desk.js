// The desk's only script: figures that follow the form, progress that follows the work. Every page works without it.
"use strict";
(() => {
  document.documentElement.classList.add("scripted");
  const form = document.getElementById("step");
  let asked = 0;
  let waiting = 0;

  // What the form would decide: the page with it, of which the parts that show figures are taken; nothing is saved.
  async function preview() {
    const mine = ++asked;
    const body = new URLSearchParams(new FormData(form));
    body.set("go", "preview");
    const answer = await fetch(form.action, { method: "POST", body }).catch(() => null);
    if (!answer || !answer.ok || mine !== asked) return;
    const made = new DOMParser().parseFromString(await answer.text(), "text/html");
    document.querySelectorAll("[data-live]").forEach((old) => {
      const now = made.getElementById(old.id);
      if (!now) return;
      const opened = [...old.querySelectorAll("details")].map((one) => one.open);
      now.querySelectorAll("details").forEach((one, place) => { one.open = Boolean(opened[place]); });
      old.replaceWith(now);
    });
    again();
  }

  function soon(delay) {
    clearTimeout(waiting);
    waiting = setTimeout(preview, delay);
  }

  function again() {
    const live = document.getElementById("live");
    if (live && live.dataset.again) soon(700);
  }

  if (form && document.getElementById("live")) {
    form.addEventListener("change", () => soon(50));
    const slider = document.getElementById("rho2");
    if (slider) {
      slider.addEventListener("input", () => {
        slider.setAttribute("aria-valuetext", slider.dataset.words.split("|")[slider.value]);
        soon(150);
      });
    }
    again();
  }

  // Work under way: the page is asked for anew when it is done.
  const working = document.querySelector(".working[data-state=running]");
  if (working && !working.closest("#live")) {
    const bar = working.querySelector("progress");
    const what = working.querySelector(".what");
    const look = async () => {
      const answer = await fetch(`/progress/${working.dataset.work}`).catch(() => null);
      if (!answer) return;
      const seen = await answer.json();
      if (seen.state !== "running") { location.replace(location.pathname); return; }
      if (seen.words) what.textContent = seen.words;
      if (seen.share === null) bar.removeAttribute("value"); else bar.value = seen.share;
      setTimeout(look, 500);
    };
    setTimeout(look, 400);
  }

  document.querySelectorAll("button.copy").forEach((button) => {
    button.hidden = false;
    button.addEventListener("click", () => navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent));
  });
})();
