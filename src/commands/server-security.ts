import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { type Config, UsageError } from '../config.js';
import { fileProblem } from '../file-problem.js';
import { parseYaml } from '../parse-yaml.js';
import { type ApiKey, ApiKeys } from '../server/api-keys.js';

/** Who may use the server, and how. */
export interface ServerSecurity {
  apiKeys: ApiKeys;
  corsOrigins: readonly string[] | '*';
  /** undefined: plain HTTP. */
  tls: { cert: Buffer; key: Buffer } | undefined;
}

/** Reads the files that the options name, before anything costly is begun. @throws UsageError. */
export function readSecurity(config: Config): ServerSecurity {
  const keys: ApiKey[] = (config.apiKey ?? []).map((key, index) => ({
    name: `key-${index + 1}`,
    key,
    weight: 1,
  }));
  if (config.apiKeyFile !== undefined) keys.push(...readKeyFile(config.apiKeyFile));
  checkDistinct(keys);
  if (config.fairQueueing && keys.length < 2) {
    throw new UsageError(
      '--fair-queueing shares the engine among API keys; it needs at least two, from --api-key or --api-key-file.',
    );
  }
  return {
    apiKeys: new ApiKeys(keys),
    corsOrigins: corsOriginsOf(config.corsOrigin ?? []),
    tls: readTls(config),
  };
}

function checkDistinct(keys: readonly ApiKey[]): void {
  const seen = new Map<string, string>();
  for (const { name, key } of keys) {
    const other = seen.get(key);
    if (other !== undefined) throw new UsageError(`The API keys ${other} and ${name} are the same key.`);
    seen.set(key, name);
  }
}

/** A list of {name, key, weight, admin}. */
function readKeyFile(path: string): ApiKey[] {
  const what = `The file of --api-key-file, ${path},`;
  const text = readFile('--api-key-file', path).toString('utf8');
  const content = parseYaml(text, what);
  if (!Array.isArray(content) || content.length === 0) {
    throw new UsageError(
      `${what} must hold a list such as [{"name": "alice", "key": "sk-...", "weight": 1}].`,
    );
  }
  const keys = content.map((entry, index) => keyOf(entry, `Entry ${index + 1} of ${path}`));
  const names = new Set<string>();
  for (const { name } of keys) {
    if (names.has(name)) throw new UsageError(`${what} has two keys of the name ${name}.`);
    names.add(name);
  }
  return keys;
}

function keyOf(entry: unknown, what: string): ApiKey {
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) {
    throw new UsageError(`${what} must be an object with name and key.`);
  }
  const { name, key, weight = 1, admin = false, ...rest } = entry as Record<string, unknown>;
  const [unknown] = Object.keys(rest);
  if (unknown !== undefined) {
    throw new UsageError(`${what} has an unknown field ${unknown}; fields are name, key, weight and admin.`);
  }
  if (typeof name !== 'string' || !/^[\x21-\x7e]{1,64}$/.test(name)) {
    throw new UsageError(`${what}: name must be 1 to 64 letters, digits or signs without blanks.`);
  }
  if (typeof key !== 'string' || key.trim() === '' || key !== key.trim()) {
    throw new UsageError(
      `${what} (${name}): key must be a text that is not empty, without blanks around it.`,
    );
  }
  if (typeof weight !== 'number' || !(weight > 0 && weight <= 1000)) {
    throw new UsageError(`${what} (${name}): weight must be a number above 0 and at most 1000.`);
  }
  if (typeof admin !== 'boolean') {
    throw new UsageError(`${what} (${name}): admin must be true or false.`);
  }
  return { name, key, weight, admin };
}

function corsOriginsOf(origins: readonly string[]): readonly string[] | '*' {
  if (origins.length === 0) return '*';
  if (origins.length > 1 && origins.some((origin) => origin === '*' || origin === 'none')) {
    throw new UsageError('--cors-origin is * or none, or names origins; not both.');
  }
  if (origins[0] === '*') return '*';
  if (origins[0] === 'none') return [];
  for (const origin of origins) {
    if (URL.canParse(origin) && new URL(origin).origin === origin) continue;
    throw new UsageError(
      `--cors-origin is "${origin}"; it must be an origin such as https://example.com:8080, without a path, or * or none.`,
    );
  }
  return origins;
}

function readTls({ tlsCert, tlsKey }: Config): ServerSecurity['tls'] {
  if (tlsCert === undefined && tlsKey === undefined) return undefined;
  if (tlsKey === undefined)
    throw new UsageError('--tls-cert needs --tls-key, the private key of the certificate.');
  if (tlsCert === undefined) throw new UsageError('--tls-key needs --tls-cert, the certificate of the key.');
  const tls = { cert: readFile('--tls-cert', tlsCert), key: readFile('--tls-key', tlsKey) };
  try {
    createSecureContext({ cert: tls.cert });
  } catch {
    throw new UsageError(`The file of --tls-cert, ${tlsCert}, is no certificate in PEM.`);
  }
  try {
    createSecureContext({ key: tls.key });
  } catch {
    throw new UsageError(
      `The file of --tls-key, ${tlsKey}, is no private key in PEM, or one with a passphrase.`,
    );
  }
  try {
    createSecureContext(tls);
  } catch {
    throw new UsageError(`The key in ${tlsKey} is not that of the certificate in ${tlsCert}.`);
  }
  return tls;
}

function readFile(flag: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new UsageError(`The file of ${flag}, ${path}, cannot be read: ${fileProblem(error)}`);
  }
}
