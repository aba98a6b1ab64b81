import { closestName } from '../base/did-you-mean.js';
import { FORMER_VARIABLES } from './options/old-names.js';
import { OPTION_NAMES, variableName } from './options/table.js';

/** Variables that are no option's: what each is for stands in docs/options.md, or with the tests and tools that read it. */
const OTHER_VARIABLES = [
  ...['SKEIN_CONFIG', 'SKEIN_CACHE_DIR', 'SKEIN_STATE_DIR', 'SKEIN_DEBUG', 'SKEIN_ISA', 'SKEIN_PEERS'],
  ...['SKEIN_API_KEY', 'SKEIN_MODEL', 'SKEIN_SOAK_SECONDS'],
  // Read by the library that finds the addon.
  'SKEIN_PREBUILD',
  // deploy/compose.yaml's own.
  'SKEIN_MODELS_DIR',
] as const;
/** Variables of tests and of tools that measure; the last two are what Kubernetes sets for a service that is called skein. */
const OTHERS = /^SKEIN_(TEST_|COSTS_|FUZZ_|HELD_|TENSORFLOW_|SERVICE_|PORT_\d)/;

/**
 * What to say of variables that begin with SKEIN_ and that nothing reads: one line each. An environment is shared with others,
 * so that none of them is an error.
 */
export function unknownVariables(environment: Readonly<Record<string, string | undefined>>): string[] {
  const known = [...OPTION_NAMES.map(variableName), ...OTHER_VARIABLES];
  const isKnown = new Set<string>(known);
  return (
    Object.keys(environment)
      .filter((name) => name.startsWith('SKEIN_') && !isKnown.has(name))
      // Those that were an option are refused by the commands that read options.
      .filter((name) => !OTHERS.test(name) && !FORMER_VARIABLES.includes(name))
      .map((name) => {
        const meant = closestName(
          name.slice('SKEIN_'.length),
          known.map((one) => one.slice('SKEIN_'.length)),
        );
        const hint = meant === null ? '' : ` Did you mean SKEIN_${meant}?`;
        // A name may hold anything that the system allows.
        return `The variable ${JSON.stringify(name.slice(0, 80)).slice(1, -1)} is of no option and has no effect.${hint}`;
      })
  );
}
