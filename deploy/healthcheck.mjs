// Whether the server in this container takes requests: exit code 0 or 1, and on stdout what /health says.
import { get as httpGet } from 'node:http';
import { get as httpsGet } from 'node:https';

const { SKEIN_PORT = '8000', SKEIN_TLS_CERT } = process.env;
// The certificate is for the name that clients use, not for this machine's own address.
const options = {
  host: '127.0.0.1',
  port: Number(SKEIN_PORT),
  path: '/health',
  timeout: 4000,
  rejectUnauthorized: false,
};
const request = (SKEIN_TLS_CERT ? httpsGet : httpGet)(options, (response) => {
  response.pipe(process.stdout);
  response.on('end', () => {
    process.exitCode = response.statusCode === 200 ? 0 : 1;
  });
});
request.on('timeout', () => request.destroy(new Error('no answer within 4 s')));
request.on('error', (error) => {
  process.stdout.write(`${error.message}\n`);
  process.exitCode = 1;
});
