// Offline: the page and the survey are kept, and asked for anew whenever there is a network. Responses never pass here:
// the page itself keeps what is to be sent.

const KEPT = "deniable-survey-1";
const FILES = ["./", "index.html", "style.css", "survey.js", "perturb.js", "keccak.js", "words.js", "icon.svg", "site.webmanifest", "survey"];

self.addEventListener("install", (event) => {
  event.waitUntil(
    caches.open(KEPT).then((cache) => cache.addAll(FILES.filter((name) => name !== "index.html"))).then(() => self.skipWaiting()),
  );
});

self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("fetch", (event) => {
  const url = new URL(event.request.url);
  const base = new URL("./", self.location).pathname;
  const name = url.pathname.slice(base.length) || "./";
  if (event.request.method !== "GET" || url.origin !== self.location.origin || !FILES.includes(name)) return;
  event.respondWith(
    fetch(event.request)
      .then((answer) => {
        if (answer.ok) {
          const copy = answer.clone();
          event.waitUntil(caches.open(KEPT).then((cache) => cache.put(name === "index.html" ? "./" : name, copy)));
        }
        return answer;
      })
      .catch(() => caches.match(name === "index.html" ? "./" : name).then((kept) => kept ?? Response.error())),
  );
});
