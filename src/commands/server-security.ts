import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { fileProblem } from '../errors/file-problem.js';
import type { Certificate } from '../server/sockets/http-socket.js';
import { type ApiKey, ApiKeys } from '../server/web/access/api-keys.js';
import { type AllowedHosts, hostnameOf } from '../server/web/access/host-check.js';
import { isLoopbackAddress } from '../server/web/access/loopback.js';
import { type AllowedOrigins, LOOPBACK_ORIGINS } from '../server/web/access/origin-check.js';
import { type KeyLimits, LIMIT_NAMES, LIMITS, type LimitName } from '../server/web/quotas/key-limits.js';
import { type Config, UsageError } from '../settings/config.js';
import { parseYaml } from '../settings/parse-yaml.js';

/** Keys, origins and certificates that control access to the server. */
export interface ServerSecurity {
  apiKeys: ApiKeys;
  corsOrigins: AllowedOrigins;
  /** Certificate and key; undefined: plain HTTP. */
  tls: Certificate | undefined;
}

/** Reads the files that the options name, before any costly work. @throws UsageError. */
export function readSecurity(config: Config): ServerSecurity {
  return {
    apiKeys: new ApiKeys(readKeys(config)),
    corsOrigins: corsOriginsOf(config.corsOrigin ?? []),
    tls: readTls(config),
  };
}

/** The keys of --api-key and of the file of --api-key-file. @throws UsageError */
export function readKeys(config: Config): ApiKey[] {
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
  return keys;
}

/**
 * The Host names that the server answers to besides those of the loopback. Any name is allowed where keys are
 * needed, which no web page has, or where the server is meant to be reached from elsewhere; otherwise a web
 * page whose name leads to this machine would be let in.
 * @param address the address that it listens on. @throws UsageError.
 */
export function allowedHosts(
  { host, allowedHost: named }: Config,
  { count }: ApiKeys,
  address: string,
): AllowedHosts {
  for (const name of named ?? []) {
    if (name === '*' || isHostName(name.replace(/^\./, ''))) continue;
    throw new UsageError(
      `--allowed-host is "${name}"; it must be the name of a host such as host.docker.internal, without scheme or port, or .example.com for all below it, or *.`,
    );
  }
  if (named?.includes('*')) return '*';
  if (named === undefined && (count > 0 || !isLoopbackAddress(address))) return '*';
  return [host, ...(named ?? [])].map((name) => name.toLowerCase());
}

function isHostName(name: string): boolean {
  return !name.includes('*') && hostnameOf(name) === name.toLowerCase();
}

/** Refuses keys with equal names or texts: a name identifies a key's requests and responses, a text its owner. */
function checkDistinct(keys: readonly ApiKey[]): void {
  const names = new Set<string>();
  const seen = new Map<string, string>();
  for (const { name, key } of keys) {
    const other = seen.get(key);
    if (other !== undefined) throw new UsageError(`The API keys ${other} and ${name} are the same key.`);
    if (names.has(name)) {
      throw new UsageError(
        `There are two API keys of the name ${name}; those of --api-key are key-1, key-2 and so on.`,
      );
    }
    names.add(name);
    seen.set(key, name);
  }
}

/** Reads a list of {name, key, weight, admin, group}, and limits. */
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
  const { name, key, weight = 1, admin, group, ...rest } = entry as Record<string, unknown>;
  const [unknown] = Object.keys(rest).filter((field) => !(field in LIMITS));
  if (unknown !== undefined) {
    throw new UsageError(
      `${what} has an unknown field ${unknown}; fields are name, key, weight, admin, group, ${LIMIT_NAMES.join(', ')}.`,
    );
  }
  if (!isName(name)) {
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
  if (admin !== undefined && typeof admin !== 'boolean') {
    throw new UsageError(`${what} (${name}): admin must be true or false.`);
  }
  if (group !== undefined && !isName(group)) {
    throw new UsageError(`${what} (${name}): group must be 1 to 64 letters, digits or signs without blanks.`);
  }
  return { name, key, weight, admin, group, limits: limitsOf(rest, `${what} (${name})`) };
}

/** Undefined: there is none. */
function limitsOf(entry: Readonly<Record<string, unknown>>, what: string): KeyLimits | undefined {
  const limits: Partial<Record<LimitName, number>> = {};
  for (const name of LIMIT_NAMES) {
    const value = entry[name];
    if (value === undefined) continue;
    if (!Number.isSafeInteger(value) || (value as number) < 1) {
      throw new UsageError(`${what}: ${name} must be a whole number from 1 on.`);
    }
    limits[name] = value as number;
  }
  return Object.keys(limits).length === 0 ? undefined : limits;
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && /^[\x21-\x7e]{1,64}$/.test(value);
}

function corsOriginsOf(origins: readonly string[]): AllowedOrigins {
  if (origins.length === 0) return [LOOPBACK_ORIGINS];
  if (origins.length > 1 && origins.some((origin) => origin === '*' || origin === 'none')) {
    throw new UsageError('--cors-origin is * or none, or names origins; not both.');
  }
  if (origins[0] === '*') return '*';
  if (origins[0] === 'none') return [];
  for (const origin of origins) {
    if (origin === LOOPBACK_ORIGINS || isOrigin(origin)) continue;
    throw new UsageError(
      `--cors-origin is "${origin}"; it must be an origin such as https://example.com:8080, without a path, or loopback, * or none.`,
    );
  }
  return origins;
}

/** True for an origin as browsers send it: of the web, or of a program or an extension, such as app://obsidian.md. */
function isOrigin(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, origin } = new URL(text);
  if (/^(https?|wss?|ftp):$/.test(protocol)) return origin === text;
  return /^[a-z][a-z0-9+.-]*:\/\/[\w.-]+(:\d+)?$/.test(text);
}

/** The certificate and its key, checked; undefined: the options name none. @throws UsageError */
export function readTls({ tlsCert, tlsKey }: Config): ServerSecurity['tls'] {
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
