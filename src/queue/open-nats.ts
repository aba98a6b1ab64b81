import { readFileSync } from 'node:fs';
import type { ConnectionOptions, NatsConnection } from '@nats-io/transport-node';
import { messageOf } from '../../base/error-text.js';
import { QueueNames } from '../../cluster/nats/names.js';
import { type NatsModules, WorkStream } from '../../cluster/nats/work-stream.js';
import { fileProblem } from '../errors/file-problem.js';
import { UsageError } from '../errors/user-errors.js';
import type { Config } from '../settings/config.js';
import { loadNats } from './nats-packages.js';

/** The queue, as it is connected. */
export interface OpenQueue {
  nc: NatsConnection;
  modules: NatsModules;
  names: QueueNames;
  stream: WorkStream;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Milliseconds between two questions whether the NATS server is there; two without an answer are a lost connection. */
const PING_MS = 2_000;
const CONNECT_MS = 5_000;
const RECONNECT_MS = 250;
/** How Node.js says that it does not know who has signed a certificate. */
const OWN_AUTHORITY = /self[- ]signed|unable to (get|verify)/i;
const SCHEME = /^(nats|tls):\/\//;

/**
 * Connects to the NATS server of a configuration, and makes the stream of requests where it is not there.
 * @throws UsageError; an Error with one sentence where the server cannot be reached, or refuses
 */
export async function openQueue(
  config: Config,
  name: string,
  environment: Environment = process.env,
): Promise<OpenQueue> {
  const servers = addressesOf(config);
  const options: ConnectionOptions = {
    servers: servers.map((address) => address.replace(SCHEME, '')),
    name,
    maxReconnectAttempts: -1,
    reconnectTimeWait: RECONNECT_MS,
    reconnectJitter: RECONNECT_MS,
    pingInterval: PING_MS,
    maxPingOut: 2,
    timeout: CONNECT_MS,
    // A secret that is being changed is wrong for a while.
    ignoreAuthErrorAbort: true,
    ...tlsOf(config, servers),
  };
  const secrets = readSecrets(config, environment);
  const modules = loadNats();
  checkKeys(secrets, modules);
  let nc: NatsConnection;
  try {
    nc = await modules.nats.connect({ ...options, ...credentialsOf(secrets, modules) });
  } catch (error) {
    const why = messageOf(error);
    const hint = OWN_AUTHORITY.test(why) ? ' (--nats-ca-file is for an authority of your own)' : '';
    throw new Error(`The NATS server ${servers.join(', ')} cannot be used: ${why}${hint}.`);
  }
  const names = new QueueNames(config.natsPrefix);
  const { natsStorage: storage, natsReplicas: replicas, natsMaxRequests: maxMessages } = config;
  const stream = new WorkStream(nc, modules, names, { storage, replicas, maxMessages });
  try {
    await stream.ensure();
  } catch (error) {
    await nc.close();
    throw new Error(
      `The work queue ${names.stream} of the NATS server ${servers.join(', ')} cannot be used: ${messageOf(error)}. JetStream has to be on (nats-server --jetstream), and open to this account.`,
    );
  }
  return { nc, modules, names, stream };
}

/** @throws UsageError for what is no address, or holds a secret: addresses stand in logs and lists of processes */
function addressesOf({ nats }: Config): string[] {
  if (nats === undefined) {
    throw new UsageError(
      '--nats is required: the address of a NATS server, such as nats://127.0.0.1:4222 (SKEIN_NATS does as well).',
    );
  }
  for (const address of nats) {
    const url = parsed(SCHEME.test(address) ? address : `nats://${address}`);
    if (url !== null && (url.username !== '' || url.password !== '')) {
      throw new UsageError(
        '--nats holds a user or a password; give them by --nats-user and --nats-password-file, or --nats-token-file, which no log shows.',
      );
    }
    if (url !== null && url.hostname !== '' && /^\/?$/.test(url.pathname) && url.search === '') continue;
    throw new UsageError(
      `--nats is ${JSON.stringify(address)}; an address such as nats://127.0.0.1:4222 or tls://HOST:4222 is expected.`,
    );
  }
  return nats;
}

function parsed(text: string): URL | null {
  try {
    return new URL(text);
  } catch {
    return null;
  }
}

function tlsOf(
  { natsCaFile, natsCertFile, natsKeyFile }: Config,
  servers: readonly string[],
): Pick<ConnectionOptions, 'tls'> {
  if ((natsCertFile === undefined) !== (natsKeyFile === undefined)) {
    throw new UsageError(
      '--nats-cert-file and --nats-key-file belong together: a certificate, and its private key.',
    );
  }
  const isAsked =
    natsCaFile !== undefined || natsCertFile !== undefined || servers.some((one) => one.startsWith('tls:'));
  if (!isAsked) return {};
  const text = (flag: string, path: string | undefined) =>
    path === undefined ? undefined : readText(flag, path);
  const ca = text('--nats-ca-file', natsCaFile);
  const cert = text('--nats-cert-file', natsCertFile);
  const key = text('--nats-key-file', natsKeyFile);
  return {
    tls: {
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
    },
  };
}

/** Who connects, and how that is proven. */
type Secrets =
  | { kind: 'none' }
  /** `file`: the option, and the path, as an error names them. */
  | { kind: 'creds' | 'nkey'; secret: string; file: string }
  | { kind: 'token'; secret: string }
  | { kind: 'user'; user: string; secret: string };

/** @throws UsageError where more than one kind of credentials is given */
function readSecrets(config: Config, environment: Environment): Secrets {
  const { natsCredsFile, natsNkeyFile, natsUser, natsPasswordFile, natsTokenFile } = config;
  const token =
    natsTokenFile === undefined
      ? environment.SKEIN_NATS_TOKEN || undefined
      : readSecret('--nats-token-file', natsTokenFile);
  const given = [
    ['--nats-creds-file', natsCredsFile],
    ['--nats-nkey-file', natsNkeyFile],
    ['--nats-user', natsUser],
    [natsTokenFile === undefined ? 'SKEIN_NATS_TOKEN' : '--nats-token-file', token],
  ].flatMap(([flag, value]) => (value === undefined ? [] : [flag!]));
  if (given.length > 1)
    throw new UsageError(`${given.join(' and ')} are credentials of different kinds; give one of them.`);
  if (natsPasswordFile !== undefined && natsUser === undefined) {
    throw new UsageError('--nats-password-file needs --nats-user, whose password it is.');
  }
  if (natsCredsFile !== undefined)
    return {
      kind: 'creds',
      secret: readText('--nats-creds-file', natsCredsFile),
      file: `--nats-creds-file, ${natsCredsFile},`,
    };
  if (natsNkeyFile !== undefined)
    return {
      kind: 'nkey',
      secret: readSecret('--nats-nkey-file', natsNkeyFile),
      file: `--nats-nkey-file, ${natsNkeyFile},`,
    };
  if (token !== undefined) return { kind: 'token', secret: token };
  if (natsUser === undefined) return { kind: 'none' };
  const password =
    natsPasswordFile === undefined
      ? environment.SKEIN_NATS_PASSWORD
      : readSecret('--nats-password-file', natsPasswordFile);
  if (password === undefined) {
    throw new UsageError(
      '--nats-user needs a password: in --nats-password-file, or in the variable SKEIN_NATS_PASSWORD.',
    );
  }
  return { kind: 'user', user: natsUser, secret: password };
}

const SEED_OF_CREDS = /-BEGIN USER NKEY SEED-+\s+(\S+)\s+-+END USER NKEY SEED-/;

/** @throws UsageError for a file that is no key: the NATS client would report it as the server's refusal */
function checkKeys(secrets: Secrets, { nats }: NatsModules): void {
  if (secrets.kind !== 'creds' && secrets.kind !== 'nkey') return;
  const { kind, secret, file } = secrets;
  const seed = kind === 'nkey' ? secret : (SEED_OF_CREDS.exec(secret)?.[1] ?? '');
  try {
    if (kind === 'creds' && !secret.includes('-BEGIN NATS USER JWT-')) throw new Error('there is no token');
    nats.nkeys.fromSeed(new TextEncoder().encode(seed));
  } catch {
    const expected =
      kind === 'nkey'
        ? 'the seed of a user (SU...), alone'
        : 'a token and a seed, as `nsc generate creds` writes them';
    throw new UsageError(`The file of ${file} holds no key: it must have ${expected}.`);
  }
}

function credentialsOf(secrets: Secrets, { nats }: NatsModules): ConnectionOptions {
  const bytes = (text: string) => new TextEncoder().encode(text);
  if (secrets.kind === 'creds') return { authenticator: nats.credsAuthenticator(bytes(secrets.secret)) };
  if (secrets.kind === 'nkey') return { authenticator: nats.nkeyAuthenticator(bytes(secrets.secret)) };
  if (secrets.kind === 'token') return { token: secrets.secret };
  return secrets.kind === 'user' ? { user: secrets.user, pass: secrets.secret } : {};
}

function readText(flag: string, path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new UsageError(`The file of ${flag}, ${path}, cannot be read: ${fileProblem(error)}`);
  }
}

/** A secret alone in a file: editors end it with a line. */
function readSecret(flag: string, path: string): string {
  const secret = readText(flag, path).trim();
  if (secret !== '') return secret;
  throw new UsageError(`The file of ${flag}, ${path}, is empty.`);
}
