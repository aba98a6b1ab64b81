#!/usr/bin/env node
// Entry of the command line, which becomes dist/bin/skein.js. It runs on any Node.js version ever released, so that one
// that is too old says so, instead of failing at newer syntax.
var least = [20, 19];
var version = process.versions.node;
var parts = version.split('.');
var isTooOld = Number(parts[0]) < least[0] || (Number(parts[0]) === least[0] && Number(parts[1]) < least[1]);

if (isTooOld) {
  process.stderr.write(
    'skein: This is Node.js ' +
      version +
      ', and Skein needs ' +
      least.join('.') +
      ' or newer; install one from https://nodejs.org, or choose it with the version manager that you use.\n',
  );
  process.exitCode = 1;
} else {
  import('./cli.js');
}
