// Follows work in progress: fetches the page again and shows the new state in place of the old one, without
// taking the focus away. Without scripts the page reloads itself.
const MS = 1000;

const follow = async (shown) => {
  try {
    const answer = await fetch(location.href, { headers: { accept: "text/html" } });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const next = page.querySelector("[data-follow]") ?? page.querySelector("section[aria-live]");
    if (!answer.ok || !next) return;
    // The same again is not news: a screen reader would read it aloud.
    if (shown.innerHTML !== next.innerHTML) shown.replaceChildren(...next.childNodes);
    if (!("follow" in next.dataset)) return;
  } catch {
    // offline: try again
  }
  setTimeout(follow, shown.dataset.follow * MS, shown);
};

for (const shown of document.querySelectorAll("[data-follow]")) {
  setTimeout(follow, shown.dataset.follow * MS, shown);
}
