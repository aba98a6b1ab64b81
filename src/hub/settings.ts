import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { HubError } from './hub-error.js';

type Environment = Readonly<Record<string, string | undefined>>;

/** Where models come from and where they are kept, by the variables that all tools of the Hugging Face hub know. */
export interface HubSettings {
  /** The hub's address, without a slash at its end. */
  endpoint: string;
  /** Null: only what is open to everybody. */
  token: string | null;
  /** The folder of the cache that these tools share. */
  cacheFolder: string;
  /** Only what is in the cache: nothing is asked of the network. */
  isOffline: boolean;
}

const DEFAULT_ENDPOINT = 'https://huggingface.co';

/** @throws HubError where HF_ENDPOINT is no address. */
export function hubSettings(env: Environment = process.env): HubSettings {
  const home = env.HF_HOME || join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'huggingface');
  return {
    endpoint: endpointOf(env.HF_ENDPOINT || DEFAULT_ENDPOINT),
    token: tokenOf(env, home),
    cacheFolder: resolve(env.HF_HUB_CACHE || env.HUGGINGFACE_HUB_CACHE || join(home, 'hub')),
    isOffline: isSet(env.HF_HUB_OFFLINE) || isSet(env.TRANSFORMERS_OFFLINE),
  };
}

function endpointOf(text: string): string {
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return text.replace(/\/+$/, '');
  throw new HubError(
    `HF_ENDPOINT is ${JSON.stringify(text)}; an address such as ${DEFAULT_ENDPOINT} is expected.`,
  );
}

/** Whether a variable is set, as huggingface_hub reads it: 1, ON, YES and TRUE in any case. */
function isSet(value: string | undefined): boolean {
  return /^(1|on|yes|true)$/i.test(value ?? '');
}

/** The token of the environment, else the one that `hf auth login` has left. */
function tokenOf(env: Environment, home: string): string | null {
  const given = (env.HF_TOKEN ?? env.HUGGING_FACE_HUB_TOKEN ?? '').trim();
  if (given !== '') return given;
  try {
    return readFileSync(env.HF_TOKEN_PATH || join(home, 'token'), 'utf8').trim() || null;
  } catch {
    return null;
  }
}
