/** Remove what earlier builds wrote, so that no file of a deleted source is packed or tested. */
import { rmSync } from "node:fs";

for (const folder of ["dist", "build"]) rmSync(folder, { recursive: true, force: true });
