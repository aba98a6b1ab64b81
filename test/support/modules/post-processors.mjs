// Logits post-processors as a module brings them into the worker. The fake executor draws the next token that is allowed.
import { isMainThread } from 'node:worker_threads';

const only = (logits, token) => {
  logits.fill(-Infinity);
  logits[token] = 1;
};

export function favourite(_requestId, logits, _tokens, stream, clientId) {
  stream.synchronize();
  only(logits, Number(clientId ?? 0n));
}

export const logitsPostProcessors = {
  'where am I': (_, logits) => only(logits, isMainThread ? 1 : 2),
  endless: () => {
    for (;;);
  },
};

export function logitsPostProcessorBatched(_requestIds, logits) {
  for (const view of logits) only(view, 33);
}
