import { closestName } from '../../base/did-you-mean.js';
import { UsageError } from '../errors/user-errors.js';
import { FORMER_VARIABLES } from '../options/old-names.js';
import { OPTION_NAMES, variableName } from '../options/table.js';

/** Variables that belong to no option; docs/options.md, or the test or tool that reads one, explains it. */
const OTHER_VARIABLES = [
  ...['SKEIN_CONFIG', 'SKEIN_CACHE_DIR', 'SKEIN_STATE_DIR', 'SKEIN_DEBUG', 'SKEIN_ISA', 'SKEIN_PEERS'],
  ...['SKEIN_API_KEY', 'SKEIN_MODEL', 'SKEIN_SOAK_SECONDS'],
  // The library that finds the addon reads this one.
  'SKEIN_PREBUILD',
  // Secrets of the work queue, which are no flags.
  ...['SKEIN_NATS_PASSWORD', 'SKEIN_NATS_TOKEN'],
  // A worker with several models instructs its processes by this one.
  'SKEIN_WORK_PART',
  // Only deploy/compose.yaml uses this one.
  'SKEIN_MODELS_DIR',
] as const;
/** Pattern of variables of tests and measuring tools; the last two are set by Kubernetes for a service called skein. */
const OTHERS = /^SKEIN_(TEST_|COSTS_|FUZZ_|DOCS_|HELD_|TENSORFLOW_|SERVICE_|PORT_\d)/;

/**
 * Returns a line for each variable that begins with SKEIN_ and that nothing reads: an environment is shared with other programs.
 * @throws UsageError where the name is near to one that is read, as a mistyped flag is refused
 */
export function unknownVariables(environment: Readonly<Record<string, string | undefined>>): string[] {
  const known = [...OPTION_NAMES.map(variableName), ...OTHER_VARIABLES];
  const isKnown = new Set<string>(known);
  return (
    Object.keys(environment)
      .filter((name) => name.startsWith('SKEIN_') && !isKnown.has(name))
      // Commands that read options refuse the former names of options.
      .filter((name) => !OTHERS.test(name) && !FORMER_VARIABLES.includes(name))
      .map((name) => {
        const meant = closestName(
          name.slice('SKEIN_'.length),
          known.map((one) => one.slice('SKEIN_'.length)),
        );
        // A name may hold any characters that the system allows.
        const sentence = `The variable ${JSON.stringify(name.slice(0, 80)).slice(1, -1)} is of no option and has no effect.`;
        if (meant !== null) throw new UsageError(`${sentence} Did you mean SKEIN_${meant}?`);
        return sentence;
      })
  );
}
