// Passkeys: the button of a form with data-passkey asks the browser's authenticator, and the form is sent with
// its answer. Without scripts, or in a browser that knows no passkeys, these forms stay hidden.

const decode = (text) =>
  Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (one) => one.charCodeAt(0));
const encode = (buffer) =>
  btoa(String.fromCharCode(...new Uint8Array(buffer)))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replace(/=+$/, "");

if (window.PublicKeyCredential) {
  for (const form of document.querySelectorAll("form[data-passkey]")) {
    form.hidden = false;
    form.addEventListener("submit", (event) => {
      if (form.dataset.native || form.elements.credential.value) return;
      event.preventDefault();
      event.stopPropagation();
      ask(form);
    });
  }
}

async function ask(form) {
  const alert = form.querySelector("[role=alert]");
  alert.textContent = "";
  const body = new URLSearchParams(new FormData(form));
  const answer = await fetch(form.dataset.options, { method: "POST", body, headers: { Accept: "application/json" } });
  if (!answer.ok) {
    // The page says what is wrong, in the reader's language.
    form.dataset.native = "yes";
    form.requestSubmit();
    return;
  }
  try {
    const publicKey = prepare(await answer.json());
    const credential = await navigator.credentials[form.dataset.passkey]({ publicKey });
    form.elements.credential.value = JSON.stringify(describe(credential));
  } catch {
    alert.textContent = form.dataset.failed;
    return;
  }
  form.requestSubmit();
}

function prepare(options) {
  const withBytes = (list) => (list ?? []).map((one) => ({ ...one, id: decode(one.id) }));
  return {
    ...options,
    challenge: decode(options.challenge),
    ...(options.user && { user: { ...options.user, id: decode(options.user.id) } }),
    allowCredentials: withBytes(options.allowCredentials),
    excludeCredentials: withBytes(options.excludeCredentials),
  };
}

function describe(credential) {
  const response = {};
  for (const name of ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"]) {
    if (credential.response[name]) response[name] = encode(credential.response[name]);
  }
  response.transports = credential.response.getTransports?.() ?? [];
  return { id: credential.id, rawId: encode(credential.rawId), type: credential.type, response };
}
