import { randomBytes } from 'node:crypto';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { fileProblem } from '../errors/file-problem.js';
import { useCacheSecret } from '../server/web/access/cache-salt.js';
import { type Config, UsageError } from '../settings/config.js';
import { lacksCacheSecret } from './loading-options.js';

const MIN_CHARACTERS = 32;
/** Permissions for users that are not the file's owner. */
const OTHERS = 0o077;

/**
 * Takes the secret of `--cache-secret-file` for the salts of cached prompts, and makes the file if there is none. Says on stderr what
 * the operator should know. @throws UsageError for a file that cannot be used
 */
export function takeCacheSecret(config: Config): void {
  const { cacheSecretFile: path } = config;
  if (path !== undefined) useCacheSecret(Buffer.from(readOrMake(path)));
  if (lacksCacheSecret(config)) {
    process.stderr.write(
      'skein: --disk-cache is not used: with API keys it needs --cache-secret-file, without which no later start could tell whose prompts are whose\n',
    );
  }
  if (path === undefined || process.platform === 'win32') return;
  if ((statSync(path).mode & OTHERS) === 0) return;
  process.stderr.write(
    `skein: other users of this machine may use the secret of cached prompts in ${path}; chmod 600 keeps it secret\n`,
  );
}

/** The file's text without white space around it. Two starts at once make one file. */
function readOrMake(path: string): string {
  try {
    writeFileSync(path, `${randomBytes(32).toString('hex')}\n`, { mode: 0o600, flag: 'wx' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') {
      throw new UsageError(`The file of --cache-secret-file, ${path}, cannot be made: ${fileProblem(error)}`);
    }
  }
  let text: string;
  try {
    text = readFileSync(path, 'utf8').trim();
  } catch (error) {
    throw new UsageError(`The file of --cache-secret-file, ${path}, cannot be read: ${fileProblem(error)}`);
  }
  if (text.length >= MIN_CHARACTERS) return text;
  throw new UsageError(
    `The file of --cache-secret-file, ${path}, has ${text.length} characters; a secret has at least ${MIN_CHARACTERS}.`,
  );
}
