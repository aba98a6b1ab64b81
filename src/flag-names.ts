import { flagName, OPTIONS } from './config-options.js';

// Names that are words of English too, such as model and threads, stay as they are.
const NAMES = Object.keys(OPTIONS).filter((name) => /[A-Z]/.test(name));
/** What the engine calls otherwise than the flag does. */
const ENGINE_NAMES: Record<string, string> = { draftEnginePath: 'draftModel' };
const PATTERN = new RegExp(
  `(?<![\\w./-])(?:optionalParams\\.)?(?:kvCacheConfig\\.)?(${[...NAMES, ...Object.keys(ENGINE_NAMES)].join('|')})(?![\\w/-]|\\.\\w)`,
  'g',
);

/**
 * A message of the engine with its options named as the flags of the server: `maxNumTokens = 16` becomes
 * `--max-num-tokens = 16`. Parts of paths are left alone.
 */
export function withFlagNames(message: string): string {
  return message.replace(PATTERN, (_, name: string) => `--${flagName(ENGINE_NAMES[name] ?? name)}`);
}
