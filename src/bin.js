#!/usr/bin/env node
// What `skein` starts: dist/bin/skein.js is this file. It is written for any Node.js there ever was, so that one that is too
// old says so, instead of what it makes of newer syntax.
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
