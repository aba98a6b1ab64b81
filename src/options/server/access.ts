import { listOf, NAME, wholeNumber } from '../../../base/option-values.js';
import { ACCESS, NAMES, OF_CLIENTS, ofServer } from './server-option.js';

const TEXTS = listOf('a text that is not empty, or a list of such');

/** Options of addresses, keys and pages that may use the server. */
export const ACCESS_OPTIONS = {
  host: ofServer(
    NAME,
    {
      group: ACCESS,
      isCommon: true,
      metavar: 'ADDRESS',
      default: '127.0.0.1',
      help: 'Address to listen on. 0.0.0.0: all addresses of this machine.',
    },
    OF_CLIENTS,
  ),
  port: ofServer(
    wholeNumber(0, 65535),
    {
      group: ACCESS,
      isCommon: true,
      metavar: 'N',
      default: 8000,
      help: 'Port to listen on. 0 picks a free one.',
    },
    OF_CLIENTS,
  ),
  grpcPort: ofServer(
    wholeNumber(0, 65535),
    {
      group: ACCESS,
      metavar: 'N',
      help: 'Port for gRPC (Open Inference Protocol, health). Triton uses 8001; 0 picks a free one.',
      defaultText: 'no gRPC',
    },
    OF_CLIENTS,
  ),
  maxGrpcStreams: ofServer(
    wholeNumber(1, 1_000_000),
    {
      group: ACCESS,
      unit: 'streams',
      default: 1000,
      help: 'Most gRPC calls at once on one connection; all connections together may have twice as many.',
    },
    OF_CLIENTS,
  ),
  apiKey: ofServer(
    TEXTS,
    {
      group: ACCESS,
      isCommon: true,
      metavar: 'KEY',
      help: 'Key that clients must send. Repeat for several keys.',
      defaultText: 'none',
    },
    OF_CLIENTS,
  ),
  apiKeyFile: ofServer(
    NAME,
    {
      group: ACCESS,
      metavar: 'FILE',
      help: 'File of keys, JSON or YAML: a list of {name, key, weight, admin, group}, and of limits: tokens_per_minute, tokens_per_day, requests_per_minute, requests_per_day. weight: share with --fair-queueing; admin: may reset the cache and see all request ids; group: keys that share cached prompts.',
      defaultText: 'none',
    },
    OF_CLIENTS,
  ),
  cacheSecretFile: ofServer(
    NAME,
    {
      group: ACCESS,
      metavar: 'FILE',
      help: 'File with the secret that separates the cached prompts of API keys, created if missing. With it --disk-cache keeps them too.',
      defaultText: 'a secret that ends with the process',
    },
    OF_CLIENTS,
  ),
  corsOrigin: ofServer(
    TEXTS,
    {
      group: ACCESS,
      metavar: 'ORIGIN',
      help: 'Origin of web pages that may use the server, such as https://example.com. Repeat for several. loopback: pages of this machine; *: all; none: none.',
      defaultText: 'loopback',
    },
    OF_CLIENTS,
  ),
  allowedHost: ofServer(
    NAMES,
    {
      group: ACCESS,
      metavar: 'NAME',
      help: 'Further host name of this server, such as host.docker.internal, or .example.com for all names below it. Repeat for several; * for any. Once given, requests with other Host headers are refused.',
      defaultText: 'any with API keys or if --host is no loopback address, else none',
    },
    OF_CLIENTS,
  ),
  tlsCert: ofServer(
    NAME,
    {
      group: ACCESS,
      metavar: 'FILE',
      help: 'Certificate chain in PEM, for HTTPS. Needs --tls-key.',
      defaultText: 'none',
    },
    OF_CLIENTS,
  ),
  tlsKey: ofServer(
    NAME,
    {
      group: ACCESS,
      metavar: 'FILE',
      help: 'Private key of the certificate, in PEM.',
      defaultText: 'none',
    },
    OF_CLIENTS,
  ),
};
