import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { homeFolder } from '../../base/home-folder.js';
import { HubError, holdsSecret } from '../errors/user-errors.js';

type Environment = Readonly<Record<string, string | undefined>>;

/** Address and cache of the hub, from the variables that all tools of Hugging Face share. */
export interface HubSettings {
  /** Address of the hub, without a slash at its end. */
  endpoint: string;
  /** Token for the hub; null: only public repositories. */
  token: string | null;
  /** Folder of the shared cache. */
  cacheFolder: string;
  /** True where only the cache is used, without the network. */
  isOffline: boolean;
}

const DEFAULT_ENDPOINT = 'https://huggingface.co';

/** Reads the settings. @throws HubError where HF_ENDPOINT is no address, or holds a secret. */
export function hubSettings(env: Environment = process.env): HubSettings {
  const home = env.HF_HOME || join(env.XDG_CACHE_HOME || join(homeFolder(), '.cache'), 'huggingface');
  return {
    endpoint: endpointOf(env.HF_ENDPOINT || DEFAULT_ENDPOINT),
    token: tokenOf(env, home),
    cacheFolder: resolve(env.HF_HUB_CACHE || env.HUGGINGFACE_HUB_CACHE || join(home, 'hub')),
    isOffline: isSet(env.HF_HUB_OFFLINE) || isSet(env.TRANSFORMERS_OFFLINE),
  };
}

function endpointOf(text: string): string {
  if (holdsSecret(text)) {
    throw new HubError(
      'HF_ENDPOINT holds a user or a password; give the address alone, and a token in HF_TOKEN, which no log shows.',
    );
  }
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return text.replace(/\/+$/, '');
  throw new HubError(
    `HF_ENDPOINT is ${JSON.stringify(text)}; an address such as ${DEFAULT_ENDPOINT} is expected.`,
  );
}

/** True where a variable is set in huggingface_hub's sense: 1, ON, YES and TRUE in any case. */
function isSet(value: string | undefined): boolean {
  return /^(1|on|yes|true)$/i.test(value ?? '');
}

/** The token of the environment, else the one stored by `hf auth login`. */
function tokenOf(env: Environment, home: string): string | null {
  const given = (env.HF_TOKEN ?? env.HUGGING_FACE_HUB_TOKEN ?? '').trim();
  if (given !== '') return given;
  try {
    return readFileSync(env.HF_TOKEN_PATH || join(home, 'token'), 'utf8').trim() || null;
  } catch {
    return null;
  }
}
