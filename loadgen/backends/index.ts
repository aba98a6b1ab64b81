import type { Backend, BackendName, BackendOptions } from './backend.js';
import { chatBackend } from './chat.js';
import { completionsBackend } from './completions.js';
import { kserveBackend } from './kserve.js';
import { rawBackend } from './raw.js';
import { responsesBackend } from './responses.js';

const BACKENDS: Readonly<Record<BackendName, (options: BackendOptions) => Backend>> = {
  chat: chatBackend,
  completions: completionsBackend,
  responses: responsesBackend,
  kserve: kserveBackend,
  raw: rawBackend,
};

export function createBackend(options: BackendOptions): Backend {
  return BACKENDS[options.name](options);
}
