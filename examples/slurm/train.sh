#!/bin/bash
#SBATCH --job-name=train
#SBATCH --array=0-3
#SBATCH --cpus-per-task=1
#SBATCH --mem=200M
#SBATCH --time=00:10:00
#SBATCH --licenses=vcs:1
#SBATCH --output=train-%a.out
echo "part ${NOMAD_ALLOC_INDEX-$SLURM_ARRAY_TASK_ID} on $(hostname)"
sleep 1
