import { skeinVersion } from '../../base/package-info.js';
import { type Finding, ok } from '../doctor/finding.js';
import { machineFacts, machineFindings, readingFinding } from '../doctor/machine-findings.js';
import { cacheFinding, hubFinding, portFinding } from '../doctor/place-findings.js';
import { hubSettings } from '../hub/settings.js';
import { UsageError } from '../settings/config.js';

export interface DoctorFlags {
  port: string;
  offline?: boolean;
  json?: boolean;
}

/** Runs skein doctor. Its exit code is 1 where something is wrong. */
export async function doctor({ port, offline = false, json = false }: DoctorFlags): Promise<void> {
  const findings = await examine(portOf(port), offline);
  process.stdout.write(json ? `${JSON.stringify(findings)}\n` : report(findings));
  if (findings.some(({ state }) => state === 'wrong')) process.exitCode = 1;
}

async function examine(port: number, offline: boolean): Promise<Finding[]> {
  const facts = machineFacts();
  const settings = hubSettings();
  const hub = hubFinding(offline ? { ...settings, isOffline: true } : settings);
  return [
    ok('skein', `${skeinVersion()} on Node ${process.versions.node}, ${process.platform} ${process.arch}`),
    ...machineFindings(facts),
    await readingFinding(facts.threads),
    cacheFinding(settings),
    await hub,
    await portFinding(port),
  ];
}

function portOf(text: string): number {
  const port = Number(text);
  if (/^\d+$/.test(text) && port >= 1 && port <= 65535) return port;
  throw new UsageError(`--port is ${JSON.stringify(text)}; a number from 1 to 65535 is expected.`);
}

const WIDTHS = { part: 11, state: 7 };

/** A line for each finding, and one below it with what to do. */
export function report(findings: readonly Finding[]): string {
  return findings
    .map(({ part, state, text, advice }) => {
      const line = `${part.padEnd(WIDTHS.part)}${state.padEnd(WIDTHS.state)}${text}\n`;
      return advice === undefined ? line : `${line}${' '.repeat(WIDTHS.part + WIDTHS.state)}${advice}\n`;
    })
    .join('');
}
