"""Programs that use Holdfast as a library, for things other than tickets."""
