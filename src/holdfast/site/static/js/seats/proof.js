// A hash puzzle that the server sets while very many guests want the same show: web/puzzles.py.

const ROUND = 512; // hashes at a time: the page stays responsive in between

/** The proof that the server asks for. Without https there are no hashes; then waiting is the proof. */
export async function solve({ puzzle, bits, retry_after_s: waitS }) {
  if (!globalThis.crypto?.subtle) {
    await new Promise((resolve) => setTimeout(resolve, waitS * 1000));
    return puzzle;
  }
  const encoder = new TextEncoder();
  for (let first = 0; ; first += ROUND) {
    const proofs = Array.from({ length: ROUND }, (_, i) => `${puzzle}.${first + i}`);
    const sums = await Promise.all(
      proofs.map((proof) => crypto.subtle.digest("SHA-256", encoder.encode(proof))),
    );
    const found = sums.findIndex((sum) => zeroBits(new DataView(sum)) >= bits);
    if (found >= 0) return proofs[found];
  }
}

function zeroBits(view) {
  const first = Math.clz32(view.getUint32(0));
  return first < 32 ? first : 32 + Math.clz32(view.getUint32(4));
}
