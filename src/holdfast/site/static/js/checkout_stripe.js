// Stripe's own form in its own frame: what is typed there goes to Stripe and nowhere else.

const form = document.getElementById("stripe");
const button = form.querySelector("button");
const wrong = document.getElementById("stripe-wrong");
const script = document.getElementById("stripe-script");

function say(sentence) {
  wrong.textContent = sentence;
  wrong.hidden = !sentence;
}

function mount() {
  const stripe = window.Stripe(form.dataset.key);
  const night = matchMedia("(prefers-color-scheme: dark)").matches;
  const elements = stripe.elements({
    clientSecret: form.dataset.secret,
    appearance: { theme: night ? "night" : "stripe" },
  });
  const element = elements.create("payment");
  element.on("ready", () => (button.disabled = false));
  element.on("loaderror", () => say(form.dataset.away));
  element.mount("#stripe-element");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    say("");
    const back = new URL(form.dataset.return, location.href).href;
    const { error } = await stripe.confirmPayment({ elements, confirmParams: { return_url: back } });
    if (error?.type === "validation_error") {
      say(error.message);
      button.disabled = false;
    } else location.assign(back); // declined or done: our own page says which, and whether the seats are held
  });
}

if (window.Stripe) mount();
else {
  script.addEventListener("load", mount);
  script.addEventListener("error", () => say(form.dataset.away));
}
