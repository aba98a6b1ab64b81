import { MAX_INT32 } from '../../../base/int32.js';
import { listOf, NAME, oneOf, rule, SWITCH, type Values, wholeNumber } from '../../../base/option-values.js';
import { DAY_SECONDS, LONGEST_QUEUE, ofServer } from './server-option.js';

const isPrefix = (value: unknown) =>
  typeof value === 'string' && value.length <= 128 && /^[\w-]+(\.[\w-]+)*$/.test(value);
/** Beginning of the subjects of the work queue, and of its stream's name. */
const PREFIX: Values<string> = {
  ...rule<string>('words of letters, digits, - and _ with dots between them', isPrefix),
  kind: 'text',
};
const OF_QUEUE = { isForServe: false, isForBatch: false };
const QUEUE = 'Work queue';

/** Options of the work queue. */
export const QUEUE_OPTIONS = {
  nats: ofServer(
    listOf('the address of a NATS server, such as nats://127.0.0.1:4222, or a list of such'),
    {
      group: QUEUE,
      metavar: 'URL',
      help: 'Address of the NATS server with the work queue, which needs JetStream; repeat the option for further servers of its cluster; tls://HOST:PORT for TLS.',
      defaultText: 'none; skein gateway and skein work need it',
    },
    OF_QUEUE,
  ),
  natsPrefix: ofServer(
    PREFIX,
    {
      group: QUEUE,
      metavar: 'NAME',
      default: 'skein',
      help: "First word of all subjects and of the stream's name. Gateways and workers with different prefixes are separate.",
    },
    OF_QUEUE,
  ),
  natsCredsFile: ofServer(
    NAME,
    { group: QUEUE, metavar: 'FILE', help: 'Credentials for NATS: a .creds file.', defaultText: 'none' },
    OF_QUEUE,
  ),
  natsNkeyFile: ofServer(
    NAME,
    {
      group: QUEUE,
      metavar: 'FILE',
      help: 'Credentials for NATS: a file with the seed of an nkey.',
      defaultText: 'none',
    },
    OF_QUEUE,
  ),
  natsUser: ofServer(
    NAME,
    {
      group: QUEUE,
      metavar: 'NAME',
      help: 'Credentials for NATS: a user, whose password is in --nats-password-file or the variable SKEIN_NATS_PASSWORD.',
      defaultText: 'none',
    },
    OF_QUEUE,
  ),
  natsPasswordFile: ofServer(
    NAME,
    { group: QUEUE, metavar: 'FILE', help: 'File with the password of --nats-user.', defaultText: 'none' },
    OF_QUEUE,
  ),
  natsTokenFile: ofServer(
    NAME,
    {
      group: QUEUE,
      metavar: 'FILE',
      help: 'Credentials for NATS: a file with a token; the variable SKEIN_NATS_TOKEN does as well.',
      defaultText: 'none',
    },
    OF_QUEUE,
  ),
  natsCaFile: ofServer(
    NAME,
    {
      group: QUEUE,
      metavar: 'FILE',
      help: "Certificates in PEM by which the NATS server's is checked; with it the connection has TLS.",
      defaultText: "the system's, with tls://",
    },
    OF_QUEUE,
  ),
  natsCertFile: ofServer(
    NAME,
    {
      group: QUEUE,
      metavar: 'FILE',
      help: 'Own certificate in PEM, for NATS servers that ask for one; needs --nats-key-file.',
      defaultText: 'none',
    },
    OF_QUEUE,
  ),
  natsKeyFile: ofServer(
    NAME,
    { group: QUEUE, metavar: 'FILE', help: 'Private key of --nats-cert-file, in PEM.', defaultText: 'none' },
    OF_QUEUE,
  ),
  natsStorage: ofServer(
    oneOf('file', 'memory'),
    {
      group: QUEUE,
      default: 'file',
      help: 'Where the NATS server keeps the work queue, if it is not there yet.',
    },
    OF_QUEUE,
  ),
  natsReplicas: ofServer(
    wholeNumber(1, 5),
    {
      group: QUEUE,
      metavar: 'N',
      default: 1,
      help: 'Servers of the NATS cluster that have the work queue, if it is not there yet.',
    },
    OF_QUEUE,
  ),
  natsMaxRequests: ofServer(
    LONGEST_QUEUE,
    {
      group: QUEUE,
      unit: 'requests',
      default: 10_000,
      help: 'Requests of all gateways that may lie in the work queue, if it is not there yet.',
    },
    OF_QUEUE,
  ),
  state: ofServer(
    oneOf('nats', 'local'),
    {
      group: QUEUE,
      help: 'Where a gateway keeps files, batches, responses and conversations. nats: in the NATS server, where all gateways find them; local: in this process, and files in --files-dir.',
      defaultText: 'nats; local with --files-dir',
    },
    OF_QUEUE,
  ),
  allowDifferentBits: ofServer(
    SWITCH,
    {
      group: QUEUE,
      default: false,
      help: 'If no equal worker is left, continue an answer on one with other weights, version or instruction set; the rest may differ from an uninterrupted answer.',
    },
    OF_QUEUE,
  ),
  poolWeights: ofServer(
    NAME,
    {
      group: QUEUE,
      metavar: 'LIST',
      help: 'Shares of new requests among engines of one model, by system_fingerprint: fp_a=95,fp_b=5, or @FILE with one on each line, which SIGHUP reloads. Other engines get only requests that name them (header X-Skein-Engine), and finish what they have.',
      defaultText: 'wherever there is room',
    },
    OF_QUEUE,
  ),
  workerWaitSeconds: ofServer(
    wholeNumber(0, DAY_SECONDS),
    {
      group: QUEUE,
      unit: 'seconds',
      default: 60,
      help: 'How long a request waits in the gateway for a suitable worker before it fails.',
    },
    OF_QUEUE,
  ),
  workerSilenceSeconds: ofServer(
    wholeNumber(1, 3600),
    {
      group: QUEUE,
      unit: 'seconds',
      default: 6,
      help: 'Silence after which a worker counts as lost and its requests move to others. The end of its process is noticed sooner.',
    },
    OF_QUEUE,
  ),
  knownModel: ofServer(
    listOf('the name of a model, or a list of names'),
    {
      group: QUEUE,
      metavar: 'NAME',
      help: 'Model that may never have had a worker. Repeat for several. Requests for it get a 503 with Retry-After and are counted as wanted, so that a worker can be started.',
      defaultText: 'none',
    },
    OF_QUEUE,
  ),
  targetFirstTokenMs: ofServer(
    wholeNumber(1, 3_600_000),
    {
      group: QUEUE,
      unit: 'milliseconds',
      help: 'Target for the time to the first token of nine in ten requests: /metrics then reports the recommended number of workers (skein:desired_workers).',
      defaultText: 'none',
    },
    OF_QUEUE,
  ),
  targetBetweenTokensMs: ofServer(
    wholeNumber(1, 3_600_000),
    {
      group: QUEUE,
      unit: 'milliseconds',
      help: 'Time between two tokens that nine of ten should stay below, for the same.',
      defaultText: 'none',
    },
    OF_QUEUE,
  ),
  routing: ofServer(
    oneOf('cache', 'any'),
    {
      group: QUEUE,
      default: 'cache',
      help: 'Where a gateway sends a request. cache: to the worker with room that has most of the prompt cached and little to do; any: to the first worker that asks.',
    },
    OF_QUEUE,
  ),
  maxLocalPrefillLength: ofServer(
    wholeNumber(0, MAX_INT32),
    {
      group: QUEUE,
      unit: 'tokens',
      default: 512,
      help: 'Longest uncached part of a prompt that the answering worker computes itself. Longer ones go to a prefill worker first, if one has room.',
    },
    OF_QUEUE,
  ),
  disaggregationMode: ofServer(
    oneOf('agg', 'prefill'),
    {
      group: QUEUE,
      default: 'agg',
      help: 'What the worker does: agg answers requests; prefill computes long prompts for workers that answer them.',
    },
    OF_QUEUE,
  ),
  maxHandOverBytes: ofServer(
    wholeNumber(0, Number.MAX_SAFE_INTEGER),
    {
      group: QUEUE,
      unit: 'bytes',
      default: 2 ** 30,
      help: 'Memory of a prefill worker for computed prompts that are not fetched yet. Beyond it the answering worker computes the prompt.',
    },
    OF_QUEUE,
  ),
  healthPort: ofServer(
    wholeNumber(0, 65535),
    {
      group: QUEUE,
      metavar: 'N',
      help: 'Port where a worker reports how it is: /health, /live and /metrics. 0 picks a free one.',
      defaultText: 'none',
    },
    OF_QUEUE,
  ),
};
