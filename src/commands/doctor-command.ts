import { Command } from 'commander';
import { skeinVersion } from '../../base/package-info.js';
import { helpBehind } from '../terminal/help.js';
import type { DoctorFlags } from './doctor.js';

const HELP = `
Says what Skein finds on this machine: processor and kernels, threads, memory and how fast it is read, the folder of models and
its space, the hub, the port. Each line is "ok", a "note" (it works, and could be better) or "wrong", with what to do about it.
It reads memory for half a second and asks the hub once; --offline leaves that out. It changes nothing.

Exit codes: 0, 1 if something is wrong, 2 for a command line that is not understood.
`;

export function doctorCommand(): Command {
  const command = new Command('doctor')
    .description('say what this machine has, and what would be slow or fail')
    .option('--port <PORT>', 'the port that a server would take', '8000')
    .option('--offline', 'do not ask the hub')
    .option('--json', 'print the findings as JSON');
  return helpBehind(command, HELP).action(async (flags: DoctorFlags) => {
    const { doctor } = await import('./doctor.js');
    await doctor(flags);
  });
}

export function versionCommand(): Command {
  return new Command('version')
    .description('print the versions of Skein and Node, and the kernels that run')
    .option('--json', 'print JSON')
    .action(async ({ json = false }: { json?: boolean }) => {
      const { chosenKernels } = await import('../doctor/machine-findings.js');
      const { node } = process.versions;
      const platform = `${process.platform}-${process.arch}`;
      const found = { skein: skeinVersion(), node, platform, kernels: chosenKernels() };
      const text = `skein ${found.skein}, Node ${node}, ${platform}, kernels: ${found.kernels}`;
      process.stdout.write(`${json ? JSON.stringify(found) : text}\n`);
    });
}
