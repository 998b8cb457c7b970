"""What a class of jobs needs, its models counted in. Source: SPEC §5, floors."""

from collections.abc import Iterable

from umbra_compute.model.placement import ClassRow, Need


def need_of(row: ClassRow) -> Need:
    """Return the floors of a class: the largest of its own and of its models'.

    The largest, not the sum: models may run one after another. Where a VRAM floor stands and
    no RAM floor, it is the RAM floor too: the size does not go away on the processor.
    A VRAM floor of zero asks for nothing and counts as none.
    """
    registered = {model.slug for model in row.models}
    vram = _largest([row.requires.vram_min_mb, *(model.vram_min_mb for model in row.models)])
    ram = _largest([row.requires.ram_min_mb, *(model.ram_min_mb for model in row.models)])
    vram_floor = None if vram is None or vram == 0 else vram
    if ram is None:
        ram = 0 if vram_floor is None else vram_floor
    accelerators = set(row.requires.accelerators)
    accelerators.update(*(model.requires_accelerators for model in row.models))
    return Need(
        kind=row.kind,
        vram_floor_mb=vram_floor,
        ram_floor_mb=ram,
        accelerators=frozenset(accelerators),
        trust_domains=frozenset(row.requires.trust_domains) or None,
        models=row.requires.models,
        unknown_models=tuple(slug for slug in row.requires.models if slug not in registered),
        prefer=row.prefer,
    )


def _largest(figures: Iterable[int | None]) -> int | None:
    return max((figure for figure in figures if figure is not None), default=None)
